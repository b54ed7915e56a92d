# SPDX-License-Identifier: GPL-3.0-or-later
"""grains: the one node group that draws the carrier's vertices as grains, and the one sand material.

Comes in: the carrier's attributes position, rotation, radius, id, shade and is_hidden. Goes out: points, which Cycles renders
as true spheres; instanced grain meshes with orientation, size and shape by the grain's id; or both, chosen by the distance
to the camera. Nothing piles up: group and material are found by name and rebuilt in place when their layout is older.
"""

import collections
import math

import bpy

from . import engine

GROUP_NAME = "Barchan Grains"
GRAIN_NAME = "Barchan Grain"
MATERIAL_NAME = "Barchan Sand"
GROUP_TAG = "barchan_layout"
GROUP_LAYOUT = 4  # of another number, from another version of the add-on: rebuilt in place
MATERIAL_LAYOUT = 2

VARIANTS = 4  # grain meshes of one kind
# Radius of the sphere with the volume of the rounded tetrahedron around four touching spheres of radius 1
# (Steiner's formula: core, faces, edges, corners).
TETRAHEDRON_BALL = (
    3 / (4 * math.pi) * (2 * math.sqrt(2) / 3 + 4 * math.sqrt(3) + 6 * (math.pi - math.acos(1 / 3)) + 4 * math.pi / 3)
) ** (1 / 3)

KINDS = ("SPHERES", "ROUNDED", "ANGULAR", "OBJECT")  # numbers of the group's input "Kind"
VIEWS = ("RENDER", "POINTS", "SPHERES")  # of the input "View"

# Distances in sphere radii at which a grain of four spheres covers about 40 and 6 pixels of a picture 1920 wide through a
# lens of 50 mm.
CLOSE_RADII = 300.0
FAR_RADII = 2000.0

# ---------------------------------------------------------------------------------------------------------------------
# Nodes in general


def attribute(nodes, name, data_type):
    """Output socket of a Named Attribute node; it has one socket per type, of which one is enabled."""
    node = nodes.new("GeometryNodeInputNamedAttribute")
    node.data_type = data_type
    node.inputs["Name"].default_value = name
    return next(socket for socket in node.outputs if socket.enabled and socket.name == "Attribute")


def _switch(group, condition, when_false, when_true, input_type="GEOMETRY"):
    node = group.nodes.new("GeometryNodeSwitch")
    node.input_type = input_type
    by_name = {socket.name: socket for socket in node.inputs if socket.enabled}
    for value, name in ((condition, "Switch"), (when_false, "False"), (when_true, "True")):
        if isinstance(value, bpy.types.NodeSocket):
            group.links.new(value, by_name[name])
        elif value is not None:
            by_name[name].default_value = value
    return next(socket for socket in node.outputs if socket.enabled)


def _math(group, operation, *values):
    node = group.nodes.new("ShaderNodeMath")
    node.operation = operation
    for socket, value in zip(node.inputs, values):
        if isinstance(value, bpy.types.NodeSocket):
            group.links.new(value, socket)
        else:
            socket.default_value = value
    return node.outputs[0]


def _vector_math(group, operation, *values):
    node = group.nodes.new("ShaderNodeVectorMath")
    node.operation = operation
    for socket, value in zip((socket for socket in node.inputs if socket.enabled), values):
        if isinstance(value, bpy.types.NodeSocket):
            group.links.new(value, socket)
        else:
            socket.default_value = value
    return next(socket for socket in node.outputs if socket.enabled)


def _is_equal(group, value, number):
    node = group.nodes.new("FunctionNodeCompare")
    node.data_type = "INT"
    node.operation = "EQUAL"
    sockets = [socket for socket in node.inputs if socket.enabled]
    group.links.new(value, sockets[0])
    sockets[1].default_value = number
    return node.outputs[0]


def _both(group, operation, first, second=None):
    node = group.nodes.new("FunctionNodeBooleanMath")
    node.operation = operation
    group.links.new(first, node.inputs[0])
    if second is not None:
        group.links.new(second, node.inputs[1])
    return node.outputs[0]


def _random(group, low, high, seed):
    """A number per grain, by its id."""
    node = group.nodes.new("FunctionNodeRandomValue")
    node.data_type = "FLOAT"
    sockets = {socket.name: socket for socket in node.inputs if socket.enabled}
    for name, value in (("Min", low), ("Max", high)):
        if isinstance(value, bpy.types.NodeSocket):
            group.links.new(value, sockets[name])
        else:
            sockets[name].default_value = value
    sockets["Seed"].default_value = seed
    group.links.new(attribute(group.nodes, "id", "INT"), sockets["ID"])
    return next(socket for socket in node.outputs if socket.enabled)


def _store(group, geometry, name, value, domain="POINT", data_type="FLOAT"):
    node = group.nodes.new("GeometryNodeStoreNamedAttribute")
    node.data_type = data_type
    node.domain = domain
    node.inputs["Name"].default_value = name
    group.links.new(geometry, node.inputs["Geometry"])
    socket = next(socket for socket in node.inputs if socket.enabled and socket.name == "Value")
    if isinstance(value, bpy.types.NodeSocket):
        group.links.new(value, socket)
    else:
        socket.default_value = value
    return node.outputs[0]


def _join(group, parts):
    node = group.nodes.new("GeometryNodeJoinGeometry")
    for part in reversed(parts):  # links of a multi-input stand in front of those before them
        group.links.new(part, node.inputs[0])
    return node.outputs[0]


def arrange(tree):
    """Columns by distance from the output, for people who open the tree."""
    links = [(link.from_node.name, link.to_node.name) for link in tree.links]
    depth = {node.name: 0 for node in tree.nodes}
    is_settled = False
    while not is_settled:
        is_settled = True
        for source, target in links:
            if depth[source] <= depth[target]:
                depth[source] = depth[target] + 1
                is_settled = False
    rows = collections.Counter()
    for name, column in depth.items():
        tree.nodes[name].location = (-220 * column, -180 * rows[column])
        rows[column] += 1


# ---------------------------------------------------------------------------------------------------------------------
# One grain of unit sphere radius


def _grain_points(group, offsets):
    parts = []
    for offset in offsets:
        point = group.nodes.new("GeometryNodePoints")
        point.inputs["Count"].default_value = 1
        point.inputs["Position"].default_value = offset
        point.inputs["Radius"].default_value = 1.0
        parts.append(point.outputs[0])
    return _join(group, parts)


def _crumpled(group, mesh, scale, amount, seed):
    """The hull of the mesh after noise has moved its vertices by up to amount."""
    position = group.nodes.new("GeometryNodeInputPosition").outputs[0]
    shift = group.nodes.new("ShaderNodeCombineXYZ")
    for socket, factor in zip(shift.inputs, (7.31, 3.17, 11.9)):
        group.links.new(_math(group, "MULTIPLY", seed, factor), socket)
    noise = group.nodes.new("ShaderNodeTexNoise")
    noise.inputs["Detail"].default_value = 1.0
    group.links.new(scale, noise.inputs["Scale"])
    group.links.new(_vector_math(group, "ADD", position, shift.outputs[0]), noise.inputs["Vector"])
    offset = group.nodes.new("ShaderNodeVectorMath")
    offset.operation = "SCALE"
    group.links.new(_vector_math(group, "SUBTRACT", noise.outputs[1], (0.5, 0.5, 0.5)), offset.inputs[0])
    group.links.new(_math(group, "MULTIPLY", amount, 2.0), offset.inputs["Scale"])
    move = group.nodes.new("GeometryNodeSetPosition")
    group.links.new(mesh, move.inputs[0])
    group.links.new(offset.outputs[0], move.inputs["Offset"])
    hull = group.nodes.new("GeometryNodeConvexHull")
    group.links.new(move.outputs[0], hull.inputs[0])
    return hull.outputs[0]


def _blunt(group, mesh):
    """The mesh with its edges cut off: each triangle becomes four, and their corners move together."""
    cut = group.nodes.new("GeometryNodeSubdivideMesh")
    cut.inputs["Level"].default_value = 1
    group.links.new(mesh, cut.inputs[0])
    blur = group.nodes.new("GeometryNodeBlurAttribute")
    blur.data_type = "FLOAT_VECTOR"
    sockets = [socket for socket in blur.inputs if socket.enabled]
    sockets[1].default_value = 1
    sockets[2].default_value = 0.5
    group.links.new(group.nodes.new("GeometryNodeInputPosition").outputs[0], sockets[0])
    move = group.nodes.new("GeometryNodeSetPosition")
    group.links.new(cut.outputs[0], move.inputs[0])
    group.links.new(next(socket for socket in blur.outputs if socket.enabled), move.inputs["Position"])
    return move.outputs[0]


def _build_grain(group):
    """One grain of unit sphere radius as a mesh. Rounded: the hull of its spheres, dented by soft noise, as worn by wind and
    water. Angular: the hull of few points, flat, as freshly broken; close, its edges are cut off."""
    sockets = group.nodes.new("NodeGroupInput").outputs
    is_angular = _is_equal(group, sockets["Kind"], KINDS.index("ANGULAR"))
    is_plain = _is_equal(group, sockets["Kind"], KINDS.index("SPHERES"))
    fine = _switch(group, _both(group, "AND", sockets["Close"], _both(group, "NOT", is_plain)), 2, 3, "INT")
    ball = group.nodes.new("GeometryNodeMeshIcoSphere")
    ball.inputs["Radius"].default_value = 1.0
    group.links.new(_switch(group, is_angular, fine, 1, "INT"), ball.inputs["Subdivisions"])
    parts = []
    for offset in _tetrahedron():
        move = group.nodes.new("GeometryNodeSetPosition")
        move.inputs["Offset"].default_value = offset
        group.links.new(ball.outputs[0], move.inputs[0])
        parts.append(move.outputs[0])
    balls = _switch(group, sockets["Tetrahedron"], ball.outputs[0], _join(group, parts))
    hull = _crumpled(
        group,
        balls,
        _switch(group, is_angular, 0.9, 1.3, "FLOAT"),
        _switch(group, is_angular, 0.35, 0.75, "FLOAT"),
        sockets["Seed"],
    )
    angular = _switch(group, sockets["Close"], hull, _blunt(group, hull))
    mesh = _switch(group, is_plain, _switch(group, is_angular, hull, angular), balls)
    smooth = group.nodes.new("GeometryNodeSetShadeSmooth")
    group.links.new(mesh, smooth.inputs[0])
    group.links.new(_both(group, "NOT", is_angular), smooth.inputs["Shade Smooth"])
    output = group.nodes.new("NodeGroupOutput")
    group.links.new(smooth.outputs[0], output.inputs[0])


def _tetrahedron():
    return [tuple(map(float, offset)) for offset in engine.core.tetrahedron(1.0)]


# ---------------------------------------------------------------------------------------------------------------------
# All grains


class _Builder:
    """Builds the group. Its parts are lazy: a switch evaluates only what it lets through."""

    def __init__(self, group, grain_group):
        self.group = group
        self.grain_group = grain_group
        self.inputs = group.nodes.new("NodeGroupInput").outputs

    def size(self):
        """Drawn radius of a grain's spheres: some are smaller than they were simulated."""
        share = _random(self.group, _math(self.group, "SUBTRACT", 1.0, self.inputs["Variation"]), 1.0, 1)
        return _math(self.group, "MULTIPLY", attribute(self.group.nodes, "radius", "FLOAT"), share)

    def instances(self, vertices, grain, selection=None, index=None):
        """One of the grains on every vertex, turned by its rotation and scaled by its radius; index says which."""
        group = self.group
        node = group.nodes.new("GeometryNodeInstanceOnPoints")
        group.links.new(vertices, node.inputs["Points"])
        group.links.new(grain, node.inputs["Instance"])
        group.links.new(attribute(group.nodes, "rotation", "QUATERNION"), node.inputs["Rotation"])
        group.links.new(self.size(), node.inputs["Scale"])
        if selection is not None:
            group.links.new(selection, node.inputs["Selection"])
        if index is not None:
            node.inputs["Pick Instance"].default_value = True
            group.links.new(index, node.inputs["Instance Index"])
        return node.outputs[0]

    def points(self, vertices, radius):
        node = self.group.nodes.new("GeometryNodeMeshToPoints")
        self.group.links.new(vertices, node.inputs["Mesh"])
        self.group.links.new(radius, node.inputs["Radius"])
        return node.outputs[0]

    def ball_radius(self):
        """Of the one sphere that stands for a grain from afar."""
        factor = _switch(self.group, self.inputs["Tetrahedron"], 1.0, TETRAHEDRON_BALL, "FLOAT")
        own = attribute(self.group.nodes, "ball", "FLOAT")
        return _math(self.group, "MULTIPLY", self.size(), _switch(self.group, self.inputs["Many Shapes"], factor, own, "FLOAT"))

    def shape_spheres(self):
        """Every sphere of every shape as a point with shape and unit_radius."""
        node = self.group.nodes.new("GeometryNodeObjectInfo")
        self.group.links.new(self.inputs["Shapes"], node.inputs["Object"])
        return self.points(node.outputs["Geometry"], attribute(self.group.nodes, "unit_radius", "FLOAT"))

    def by_shape(self, geometry, domain):
        """The parts of each shape as an instance of its own, in the order of the shapes."""
        node = self.group.nodes.new("GeometryNodeSplitToInstances")
        node.domain = domain
        self.group.links.new(geometry, node.inputs[0])
        self.group.links.new(attribute(self.group.nodes, "shape", "INT"), node.inputs["Group ID"])
        return node.outputs[0]

    def shape_meshes(self):
        """The shapes as joined icospheres, an instance each."""
        group = self.group
        ball = group.nodes.new("GeometryNodeMeshIcoSphere")
        ball.inputs["Radius"].default_value = 1.0
        ball.inputs["Subdivisions"].default_value = 2
        smooth = group.nodes.new("GeometryNodeSetShadeSmooth")
        group.links.new(ball.outputs[0], smooth.inputs[0])
        node = group.nodes.new("GeometryNodeInstanceOnPoints")
        group.links.new(self.shape_spheres(), node.inputs["Points"])
        group.links.new(smooth.outputs[0], node.inputs["Instance"])
        group.links.new(attribute(group.nodes, "unit_radius", "FLOAT"), node.inputs["Scale"])
        return self.by_shape(node.outputs[0], "INSTANCE")

    def all_spheres(self, vertices):
        """Every sphere of every grain as a point. Realising keeps the points' own radius of 1 instead of scaling it, so
        the grain's radius travels in an attribute of another name."""
        group = self.group
        stored = _store(group, vertices, "sphere_radius", self.size())
        four = self.instances(stored, _grain_points(group, _tetrahedron()))
        shape = attribute(group.nodes, "shape", "INT")
        many = self.instances(stored, self.by_shape(self.shape_spheres(), "POINT"), index=shape)
        radius = attribute(group.nodes, "sphere_radius", "FLOAT")
        scaled = _math(group, "MULTIPLY", radius, attribute(group.nodes, "unit_radius", "FLOAT"))
        one_shape = _switch(
            group, self.inputs["Tetrahedron"], self.points(vertices, self.size()), self.realised(four, radius)
        )
        return _switch(group, self.inputs["Many Shapes"], one_shape, self.realised(many, scaled))

    def realised(self, instances, radius):
        group = self.group
        realise = group.nodes.new("GeometryNodeRealizeInstances")
        group.links.new(instances, realise.inputs["Geometry"])
        resize = group.nodes.new("GeometryNodeSetPointRadius")
        group.links.new(realise.outputs[0], resize.inputs["Points"])
        group.links.new(radius, resize.inputs["Radius"])
        return resize.outputs[0]

    def kinds(self, is_close):
        """What a vertex may become: the variants of the kind that is set, or the artist's object."""
        group = self.group
        parts = []
        for variant in range(VARIANTS):
            grain = group.nodes.new("GeometryNodeGroup")
            grain.node_tree = self.grain_group
            for name in ("Tetrahedron", "Kind"):
                group.links.new(self.inputs[name], grain.inputs[name])
            grain.inputs["Close"].default_value = is_close
            grain.inputs["Seed"].default_value = variant + 0.1
            wrap = group.nodes.new("GeometryNodeGeometryToInstance")
            group.links.new(grain.outputs[0], wrap.inputs[0])
            parts.append(wrap.outputs[0])
        own = group.nodes.new("GeometryNodeObjectInfo")
        own.inputs["As Instance"].default_value = True
        group.links.new(self.inputs["Object"], own.inputs["Object"])
        is_own = _is_equal(group, self.inputs["Kind"], KINDS.index("OBJECT"))
        made = _switch(group, self.inputs["Many Shapes"], _join(group, parts), self.shape_meshes())
        return _switch(group, is_own, made, own.outputs["Geometry"])

    def meshes(self, vertices, is_view):
        """Fine meshes in renders and coarse ones in the view; or, by distance to the camera, fine meshes, coarse meshes, and
        one true sphere per grain beyond. Then all grains are points, those drawn as meshes with radius 0: so the number
        of points is the same through a shutter, without which Cycles blurs none."""
        group = self.group
        by_distance = self.inputs["By Distance"]
        camera = group.nodes.new("GeometryNodeObjectInfo")
        camera.transform_space = "RELATIVE"
        group.links.new(group.nodes.new("GeometryNodeInputActiveCamera").outputs[0], camera.inputs["Object"])
        position = group.nodes.new("GeometryNodeInputPosition").outputs[0]
        distance = _vector_math(group, "DISTANCE", position, camera.outputs["Location"])
        limits = []
        for name in ("Close", "Far"):
            node = group.nodes.new("FunctionNodeCompare")
            node.data_type = "FLOAT"
            node.operation = "LESS_THAN"
            group.links.new(distance, node.inputs[0])
            group.links.new(self.inputs[name], node.inputs[1])
            limits.append(node.outputs[0])
        is_close, is_mesh = limits
        is_coarse = _both(group, "AND", is_mesh, _both(group, "NOT", is_close))
        is_render = _both(group, "NOT", is_view)
        index = _switch(
            group,
            self.inputs["Many Shapes"],
            attribute(group.nodes, "id", "INT"),
            attribute(group.nodes, "shape", "INT"),
            "INT",
        )
        parts = []
        for is_fine, otherwise, selection in ((True, is_render, is_close), (False, is_view, is_coarse)):
            chosen = _switch(group, by_distance, otherwise, selection, "BOOLEAN")
            made = self.instances(vertices, self.kinds(is_fine), chosen, index)
            parts.append(_switch(group, _both(group, "OR", by_distance, otherwise), None, made))
        radius = _switch(group, is_mesh, self.ball_radius(), 0.0, "FLOAT")
        parts.append(_switch(group, by_distance, None, self.points(vertices, radius)))
        return _store(group, _join(group, parts), "is_mesh", 1.0, domain="INSTANCE")

    def build(self):
        group, inputs = self.group, self.inputs
        hide = group.nodes.new("GeometryNodeDeleteGeometry")
        hide.domain = "POINT"
        group.links.new(inputs["Geometry"], hide.inputs["Geometry"])
        group.links.new(attribute(group.nodes, "is_hidden", "BOOLEAN"), hide.inputs["Selection"])
        vertices = _switch(group, inputs["Some Hidden"], inputs["Geometry"], hide.outputs[0])

        is_view = group.nodes.new("GeometryNodeIsViewport").outputs[0]
        rendered = _switch(group, inputs["Grains"], self.all_spheres(vertices), self.meshes(vertices, is_view))
        # Cycles would blur points by their velocity and look at no sub-frame: wrong when the frames are retimed.
        still = group.nodes.new("GeometryNodeRemoveAttribute")
        still.inputs["Name"].default_value = "velocity"
        group.links.new(rendered, still.inputs["Geometry"])

        cheap = self.points(vertices, self.ball_radius())
        is_cheap = _both(group, "AND", is_view, _is_equal(group, inputs["View"], VIEWS.index("POINTS")))
        is_drawn = _both(group, "AND", is_view, _is_equal(group, inputs["View"], VIEWS.index("SPHERES")))
        shown = _switch(group, is_drawn, _switch(group, is_cheap, still.outputs[0], cheap), None)

        paint = group.nodes.new("GeometryNodeSetMaterial")
        group.links.new(shown, paint.inputs["Geometry"])
        group.links.new(inputs["Material"], paint.inputs["Material"])
        has_own = _both(group, "AND", inputs["Grains"], _is_equal(group, inputs["Kind"], KINDS.index("OBJECT")))
        output = group.nodes.new("NodeGroupOutput")
        group.links.new(_switch(group, has_own, paint.outputs[0], shown), output.inputs[0])


INPUTS = (
    ("Grains", "Bool", False, "Instanced meshes instead of points"),
    ("By Distance", "Bool", False, "Meshes near the camera, one sphere per grain beyond"),
    ("Tetrahedron", "Bool", False, "Four spheres instead of one"),
    ("Many Shapes", "Bool", False, "The grains' shapes are those of the object Shapes, by the attribute shape"),
    ("Shapes", "Object", None, "Every sphere of every shape as a vertex, with shape and unit_radius"),
    ("Kind", "Int", 0, "Meshes: 0 the spheres that were simulated, 1 rounded, 2 angular, 3 the object"),
    ("Object", "Object", None, "Grain of one's own, of sphere radius 1"),
    ("Close", "Float", 1.0, "Distance to the camera in m up to which meshes are fine"),
    ("Far", "Float", 10.0, "Distance to the camera in m from which a grain is one sphere"),
    ("Variation", "Float", 0.0, "Share of its radius by which the smallest grain is drawn smaller than it was simulated"),
    ("View", "Int", 0, "In the viewport: 0 as rendered, 1 a point per grain, 2 nothing"),
    ("Some Hidden", "Bool", False, "Grains with is_hidden are left out"),
    ("Material", "Material", None, "Material of the grains"),
)
GRAIN_INPUTS = (
    ("Tetrahedron", "Bool", False, "Four spheres instead of one"),
    ("Kind", "Int", 0, "0 the spheres that were simulated, 1 rounded, 2 angular"),
    ("Close", "Bool", False, "Finer"),
    ("Seed", "Float", 0.0, "Another grain of the same kind"),
)


def _group(name, inputs, build):
    """The one node group of that name in the file, made or rebuilt when needed."""
    group = bpy.data.node_groups.get((name, None))
    if group is None or group.bl_idname != "GeometryNodeTree":
        group = bpy.data.node_groups.new(name, "GeometryNodeTree")
    if group.get(GROUP_TAG) == GROUP_LAYOUT:
        return group
    group.nodes.clear()
    group.interface.clear()
    new_socket = group.interface.new_socket
    new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    if inputs is INPUTS:
        new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
    for label, kind, value, description in inputs:
        socket = new_socket(label, in_out="INPUT", socket_type="NodeSocket" + kind, description=description)
        if value is not None:
            socket.default_value = value
    build(group)
    arrange(group)
    group[GROUP_TAG] = GROUP_LAYOUT
    return group


def node_group():
    """The node group of the carrier; it holds another one for a single grain."""
    grain = _group(GRAIN_NAME, GRAIN_INPUTS, _build_grain)
    return _group(GROUP_NAME, INPUTS, lambda group: _Builder(group, grain).build())


def _socket(modifier, name):
    return next(
        item
        for item in modifier.node_group.interface.items_tree
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.name == name
    )


def set_input(modifier, name, value):
    """Sets a modifier input by its socket name: an ID property up to Blender 5.1, a real property from 5.2 on."""
    socket = _socket(modifier, name)
    inputs = getattr(getattr(modifier, "properties", None), "inputs", None)
    if inputs is not None:
        getattr(inputs, socket.identifier).value = value
    else:
        modifier[socket.identifier] = value


def get_input(modifier, name):
    """What set_input set."""
    socket = _socket(modifier, name)
    inputs = getattr(getattr(modifier, "properties", None), "inputs", None)
    return getattr(inputs, socket.identifier).value if inputs is not None else modifier[socket.identifier]


# ---------------------------------------------------------------------------------------------------------------------
# Material

# Colours of minerals by the grain's shade, linear: (shade, (r, g, b)). Most grains of desert sand are quartz, stained by
# iron oxide to different depths; some are feldspar and dark heavy minerals.
SANDS = {
    "DESERT": (
        (0.00, (0.035, 0.025, 0.020)),
        (0.04, (0.17, 0.075, 0.030)),
        (0.10, (0.38, 0.20, 0.085)),
        (0.40, (0.54, 0.33, 0.155)),
        (0.75, (0.66, 0.46, 0.255)),
        (1.00, (0.80, 0.68, 0.48)),
    ),
    "BEACH": (
        (0.00, (0.05, 0.045, 0.04)),
        (0.08, (0.20, 0.14, 0.09)),
        (0.16, (0.45, 0.36, 0.25)),
        (0.55, (0.62, 0.53, 0.40)),
        (1.00, (0.85, 0.80, 0.70)),
    ),
    "RED": (
        (0.00, (0.05, 0.02, 0.015)),
        (0.10, (0.24, 0.055, 0.02)),
        (0.50, (0.42, 0.12, 0.04)),
        (0.90, (0.55, 0.22, 0.085)),
        (1.00, (0.72, 0.48, 0.30)),
    ),
    "BLACK": (
        (0.00, (0.010, 0.010, 0.011)),
        (0.70, (0.030, 0.029, 0.030)),
        (0.88, (0.075, 0.070, 0.065)),
        (0.94, (0.10, 0.13, 0.045)),
        (1.00, (0.50, 0.47, 0.42)),
    ),
    "WHITE": ((0.00, (0.55, 0.52, 0.47)), (0.30, (0.76, 0.75, 0.72)), (1.00, (0.90, 0.90, 0.89))),
    "BLUE": ((0.00, (0.010, 0.03, 0.12)), (0.50, (0.02, 0.10, 0.38)), (1.00, (0.10, 0.32, 0.62))),
}


class _Shading:
    """Builds the material: colour by shade, a second and a third number of the grain for roughness and glints, wetness."""

    def __init__(self, tree):
        self.tree = tree

    def new(self, kind, **settings):
        node = self.tree.nodes.new(kind)
        for name, value in settings.items():
            setattr(node, name, value)
        return node

    def link(self, source, target):
        self.tree.links.new(source, target)

    def math(self, operation, *values):
        return _math(self.tree, operation, *values)

    def carried(self, name):
        """An attribute that points carry themselves and instances on the instance; the one that is absent reads 0."""
        sockets = [
            self.new("ShaderNodeAttribute", attribute_type=kind, attribute_name=name).outputs[2]
            for kind in ("GEOMETRY", "INSTANCER")
        ]
        return self.math("ADD", *sockets)

    def mix(self, factor, first, second, data_type="RGBA"):
        """Linear mix of two colours or numbers."""
        node = self.new("ShaderNodeMix", data_type=data_type)
        sockets = [socket for socket in node.inputs if socket.enabled]
        for socket, value in zip(sockets, (factor, first, second)):
            if isinstance(value, bpy.types.NodeSocket):
                self.link(value, socket)
            else:
                socket.default_value = value
        return next(socket for socket in node.outputs if socket.enabled)

    def value(self, name, number):
        node = self.new("ShaderNodeValue", name=name, label=name)
        node.outputs[0].default_value = number
        return node.outputs[0]

    def build(self):
        tree = self.tree
        tree.nodes.clear()
        shade = self.carried("shade")
        is_mesh = self.new("ShaderNodeAttribute", attribute_type="INSTANCER", attribute_name="is_mesh").outputs[2]
        wet = self.value("Wetness", 0.0)
        glints = self.value("Glints", 0.03)

        noise = self.new("ShaderNodeTexWhiteNoise", noise_dimensions="1D")
        self.link(self.math("MULTIPLY", shade, 1009.0), noise.inputs["W"])
        split = self.new("ShaderNodeSeparateColor")
        self.link(noise.outputs["Color"], split.inputs[0])
        first, second, third = split.outputs[:3]

        ramp = self.new("ShaderNodeValToRGB", name="Minerals", label="Minerals")
        self.link(shade, ramp.inputs[0])

        # Stains on the grain itself, seen close; points have no coordinates of their own.
        place = self.new("ShaderNodeTexCoord")
        stain = self.new("ShaderNodeTexNoise", noise_dimensions="4D")
        stain.inputs["Scale"].default_value = 1.6
        stain.inputs["Detail"].default_value = 3.0
        self.link(place.outputs["Object"], stain.inputs["Vector"])
        self.link(self.math("MULTIPLY", shade, 97.0), stain.inputs["W"])
        stain_share = self.math("MULTIPLY", is_mesh, 0.75)
        dark = self.new("ShaderNodeMapRange")
        self.link(stain.outputs[0], dark.inputs["Value"])
        for socket, number in zip(dark.inputs[1:5], (0.3, 0.7, 0.55, 1.3)):
            socket.default_value = number
        tint = self.mix(stain_share, 1.0, dark.outputs[0], "FLOAT")
        scale = self.new("ShaderNodeVectorMath", operation="SCALE")
        self.link(ramp.outputs[0], scale.inputs[0])
        self.link(tint, scale.inputs["Scale"])

        # A film of water: light is reflected back into the grain and is absorbed more than once, so that colours
        # become darker and deeper. Power and loss are chosen by eye.
        gamma = self.new("ShaderNodeGamma")
        self.link(scale.outputs[0], gamma.inputs[0])
        self.link(self.mix(wet, 1.0, 1.45, "FLOAT"), gamma.inputs[1])
        loss = self.new("ShaderNodeVectorMath", operation="SCALE")
        self.link(gamma.outputs[0], loss.inputs[0])
        self.link(self.mix(wet, 1.0, 0.62, "FLOAT"), loss.inputs["Scale"])

        is_glint = self.math("GREATER_THAN", third, self.math("SUBTRACT", 1.0, glints))
        dry_rough = self.mix(first, 0.42, 0.85, "FLOAT")
        rough = self.mix(is_glint, dry_rough, 0.06, "FLOAT")
        rough = self.mix(wet, rough, 0.28, "FLOAT")
        shine = self.mix(is_glint, self.mix(second, 0.25, 0.6, "FLOAT"), 1.0, "FLOAT")

        bump = self.new("ShaderNodeBump")
        bump.inputs["Distance"].default_value = 0.1
        fine = self.new("ShaderNodeTexNoise")
        fine.inputs["Scale"].default_value = 4.0
        fine.inputs["Detail"].default_value = 4.0
        self.link(place.outputs["Object"], fine.inputs["Vector"])
        self.link(self.math("MULTIPLY", is_mesh, self.mix(wet, 0.45, 0.15, "FLOAT")), bump.inputs["Strength"])
        self.link(fine.outputs[0], bump.inputs["Height"])

        shader = self.new("ShaderNodeBsdfPrincipled")
        self.link(loss.outputs[0], shader.inputs["Base Color"])
        self.link(rough, shader.inputs["Roughness"])
        self.link(shine, shader.inputs["Specular IOR Level"])
        self.link(self.math("MULTIPLY", wet, 0.5), shader.inputs["Coat Weight"])
        shader.inputs["Coat Roughness"].default_value = 0.12
        shader.inputs["Coat IOR"].default_value = 1.33
        self.link(bump.outputs[0], shader.inputs["Normal"])
        output = self.new("ShaderNodeOutputMaterial")
        self.link(shader.outputs[0], output.inputs["Surface"])
        arrange(tree)


def _set_ramp(ramp, stops):
    elements = ramp.color_ramp.elements
    while len(elements) > len(stops):
        elements.remove(elements[-1])
    while len(elements) < len(stops):
        elements.new(1.0)
    for element, (position, colour) in zip(elements, stops):
        element.position = position
        element.color = (*colour, 1.0)


def set_sand(material, sand, wet, glints):
    """Gives our material another sand. Nodes that an artist took away are passed over."""
    tree = material.node_tree
    if tree is None:
        return
    ramp = tree.nodes.get("Minerals")
    if ramp is not None and hasattr(ramp, "color_ramp"):
        _set_ramp(ramp, SANDS[sand])
    for name, number in (("Wetness", wet), ("Glints", glints)):
        node = tree.nodes.get(name)
        if node is not None and node.type == "VALUE":
            node.outputs[0].default_value = number
    middle = SANDS[sand][len(SANDS[sand]) // 2][1]
    material.diffuse_color = (*(channel * (1.0 - 0.5 * wet) for channel in middle), 1.0)


def sand_material():
    """The one sand material of the file, made when it is not there. One that lacks our mark is the artist's own."""
    material = bpy.data.materials.get((MATERIAL_NAME, None))
    if material is not None and material.get(GROUP_TAG, MATERIAL_LAYOUT) == MATERIAL_LAYOUT:
        return material
    if material is None:
        material = bpy.data.materials.new(MATERIAL_NAME)
    if material.node_tree is None:
        material.use_nodes = True
    _Shading(material.node_tree).build()
    material[GROUP_TAG] = MATERIAL_LAYOUT
    set_sand(material, "DESERT", 0.0, 0.03)
    return material


# ---------------------------------------------------------------------------------------------------------------------
# Settings -> group and material


def distances(scene, radius):
    """Fine and mesh distance in m for spheres of this radius."""
    settings = scene.barchan_look
    close = settings.close or CLOSE_RADII * radius
    return close, max(close, settings.far or FAR_RADII * radius)


def apply(scene, modifier, radius):
    """The settings as inputs of the carrier's node group. Main thread."""
    settings = scene.barchan_look
    close, far = distances(scene, radius)
    for name, value in (
        ("Grains", scene.barchan.display == "GRAINS"),
        ("By Distance", settings.by_distance),
        ("Kind", KINDS.index(settings.kind)),
        ("Object", settings.grain_object),
        ("Close", close),
        ("Far", far),
        ("Variation", settings.variation),
        ("View", VIEWS.index(settings.view)),
    ):
        set_input(modifier, name, value)


def apply_sand(scene):
    """The settings in the sand material, where there is one. Main thread."""
    material = bpy.data.materials.get((MATERIAL_NAME, None))
    if material is not None:
        settings = scene.barchan_look
        set_sand(material, settings.sand, settings.wet, settings.glints)
