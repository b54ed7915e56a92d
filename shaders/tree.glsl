// tree: where a mesh is nearest to a place, and how often it winds around it, by its tree of boxes.
// The twin of csrc/surface.c, same bits but for atan2 (turn_angle below); how and why stand there. Comes in: places
// relative to nothing, in doubles. Goes out: Found, winding numbers, inside or not.
// Four children lie in the four numbers of a vec4, as in the four lanes of the processor; all of it goes one by one.
#ifndef SAND_TREE_GLSL
#define SAND_TREE_GLSL
#include "vector.glsl"

layout(std430, binding = SAND_BIND_TREE) readonly buffer TreeBlock
{
	SandGlTree tree;
};
layout(std430, binding = SAND_BIND_TREE_NODES) readonly buffer TreeNodeBlock
{
	vec4 tree_nodes[]; // six per node: low x y z, high x y z
};
layout(std430, binding = SAND_BIND_TREE_LEAVES) readonly buffer TreeLeafBlock
{
	vec4 tree_leaves[]; // sixteen per leaf, as Leaf of surface.c
};
layout(std430, binding = SAND_BIND_TREE_WORDS) readonly buffer TreeWordBlock
{
	int tree_words[]; // triangles, order, per vertex + 1 its first triangle, triangles of vertices
};
layout(std430, binding = SAND_BIND_TREE_VERTICES) readonly buffer TreeVertexBlock
{
	float tree_vertices[];
};
#ifdef USE_NORMALS
layout(std430, binding = SAND_BIND_TREE_NORMALS) readonly buffer TreeNormalBlock
{
	double tree_normals[]; // x y z of every vertex, any length: angles are the host's
};
#endif
#ifdef USE_DIPOLES
layout(std430, binding = SAND_BIND_TREE_DIPOLES) readonly buffer TreeDipoleBlock
{
	vec4 tree_dipoles[]; // fourteen per node, as Dipoles of surface.c
};
#endif

const int FEATURE_FACE = 0;
const int FEATURE_EDGE_0 = 1;
const int FEATURE_CORNER_0 = 4;
const int TREE_STACK = 48; // three siblings wait on each of at most fourteen levels

struct Found
{
	double square;
	dvec3 point;
	int triangle;
	int feature;
};

// Nodes and leaves still to look at: level + 1 in the highest five bits, 0 = a leaf.
float stack_squares[TREE_STACK];
uint stack_codes[TREE_STACK];

dvec3 tree_middle()
{
	return dvec3(tree.middle[0], tree.middle[1], tree.middle[2]);
}

dvec3 relative_place(dvec3 place)
{
	precise dvec3 at = place - tree_middle();
	return at;
}

int corner_number(int triangle, int corner)
{
	return tree_words[3 * triangle + corner];
}

dvec3 tree_vertex(int vertex)
{
	int at = 3 * vertex;
	return dvec3(double(tree_vertices[at]), double(tree_vertices[at + 1]), double(tree_vertices[at + 2]));
}

// Relative to the middle.
dvec3 tree_corner(int triangle, int corner)
{
	precise dvec3 at = tree_vertex(corner_number(triangle, corner)) - tree_middle();
	return at;
}

dvec3 face_normal(int triangle)
{
	dvec3 a = tree_corner(triangle, 0);
	precise dvec3 u = tree_corner(triangle, 1) - a, v = tree_corner(triangle, 2) - a;
	return cross3(u, v);
}

dvec3 unit3(dvec3 v)
{
	precise double size = sqrt(product3(v, v));
	precise dvec3 one = v / size;
	return size > 0.0lf ? one : dvec3(0.0lf);
}

double smaller2(double a, double b)
{
	precise double c = a < b ? a : b;
	return c;
}

double larger2(double a, double b)
{
	precise double c = a > b ? a : b;
	return c;
}

// ---- searches ------------------------------------------------------------------------------------------------------

vec4 larger4(vec4 a, vec4 b)
{
	precise vec4 c = vec4(a.x > b.x ? a.x : b.x, a.y > b.y ? a.y : b.y, a.z > b.z ? a.z : b.z, a.w > b.w ? a.w : b.w);
	return c;
}

vec4 smaller4(vec4 a, vec4 b)
{
	precise vec4 c = vec4(a.x < b.x ? a.x : b.x, a.y < b.y ? a.y : b.y, a.z < b.z ? a.z : b.z, a.w < b.w ? a.w : b.w);
	return c;
}

vec4 product_columns(vec4 ax, vec4 ay, vec4 az, vec4 bx, vec4 by, vec4 bz)
{
	precise vec4 sum = ax * bx + ay * by + az * bz;
	return sum;
}

// Squared distances from p to the boxes of a node's children.
vec4 box_squares(int node, vec3 p)
{
	int at = 6 * node;
	precise vec4 x = larger4(larger4(tree_nodes[at] - p.x, p.x - tree_nodes[at + 3]), vec4(0.0));
	precise vec4 y = larger4(larger4(tree_nodes[at + 1] - p.y, p.y - tree_nodes[at + 4]), vec4(0.0));
	precise vec4 z = larger4(larger4(tree_nodes[at + 2] - p.z, p.z - tree_nodes[at + 5]), vec4(0.0));
	return product_columns(x, y, z, x, y, z);
}

// What one side of the four triangles of a leaf says of p, which lies w from its start.
void look_at_side(vec4 sx, vec4 sy, vec4 sz, vec4 wx, vec4 wy, vec4 wz, vec4 nx, vec4 ny, vec4 nz, vec4 inverse_square,
                  inout vec4 nearest, inout bvec4 is_over)
{
	precise vec4 ax = sy * nz - sz * ny, ay = sz * nx - sx * nz, az = sx * ny - sy * nx;
	vec4 inwards = product_columns(ax, ay, az, wx, wy, wz);
	is_over = bvec4(is_over.x && inwards.x <= 0.0, is_over.y && inwards.y <= 0.0, is_over.z && inwards.z <= 0.0,
	                is_over.w && inwards.w <= 0.0);
	precise vec4 along = product_columns(sx, sy, sz, wx, wy, wz) * inverse_square;
	precise vec4 t = smaller4(larger4(along, vec4(0.0)), vec4(1.0));
	precise vec4 dx = wx - t * sx, dy = wy - t * sy, dz = wz - t * sz;
	nearest = smaller4(nearest, product_columns(dx, dy, dz, dx, dy, dz));
}

vec4 triangle_squares(int leaf, vec3 p)
{
	int at = 16 * leaf;
	vec4 ux = tree_leaves[at + 3], uy = tree_leaves[at + 4], uz = tree_leaves[at + 5];
	vec4 vx = tree_leaves[at + 6], vy = tree_leaves[at + 7], vz = tree_leaves[at + 8];
	vec4 nx = tree_leaves[at + 9], ny = tree_leaves[at + 10], nz = tree_leaves[at + 11];
	vec4 inverse_normal = tree_leaves[at + 15];
	precise vec4 tx = -(ux + vx), ty = -(uy + vy), tz = -(uz + vz);
	precise vec4 wx = p.x - tree_leaves[at], wy = p.y - tree_leaves[at + 1], wz = p.z - tree_leaves[at + 2];
	precise vec4 bx = wx - ux, by = wy - uy, bz = wz - uz;
	precise vec4 cx = bx - vx, cy = by - vy, cz = bz - vz;
	vec4 nearest = vec4(3.402823466e38);
	bvec4 is_over = bvec4(inverse_normal.x > 0.0, inverse_normal.y > 0.0, inverse_normal.z > 0.0, inverse_normal.w > 0.0);
	look_at_side(ux, uy, uz, wx, wy, wz, nx, ny, nz, tree_leaves[at + 12], nearest, is_over);
	look_at_side(vx, vy, vz, bx, by, bz, nx, ny, nz, tree_leaves[at + 13], nearest, is_over);
	look_at_side(tx, ty, tz, cx, cy, cz, nx, ny, nz, tree_leaves[at + 14], nearest, is_over);
	vec4 height = product_columns(nx, ny, nz, wx, wy, wz);
	precise vec4 plane = height * height * inverse_normal;
	precise vec4 square = vec4(is_over.x ? plane.x : nearest.x, is_over.y ? plane.y : nearest.y,
	                           is_over.z ? plane.z : nearest.z, is_over.w ? plane.w : nearest.w);
	return square;
}

uint tree_root()
{
	return uint(tree.level_count) << 27;
}

// Children nearer than limit, the nearest on top.
void open_node(inout int count, uint code, vec3 p, float limit)
{
	int level = int(code >> 27) - 1, index = int(code & 0x7ffffffu), first = count;
	vec4 squares = box_squares(tree.level_first[level] + index, p);
	for (int k = 0; k < 4; ++k)
	{
		float square = squares[k];
		if (square <= limit)
		{
			int at = count;
			++count;
			while (at > first && stack_squares[at - 1] < square)
			{
				stack_squares[at] = stack_squares[at - 1];
				stack_codes[at] = stack_codes[at - 1];
				--at;
			}
			stack_squares[at] = square;
			stack_codes[at] = uint(level) << 27 | uint(4 * index + k);
		}
	}
}

// Least squared distance to any triangle, by floats, and its place in the order; limit and -1 when none is nearer.
float least_square(vec3 p, float limit, out int at_out)
{
	int count = 1;
	at_out = -1;
	stack_squares[0] = 0.0;
	stack_codes[0] = tree_root();
	while (count > 0)
	{
		--count;
		float square = stack_squares[count];
		uint code = stack_codes[count];
		if (square > limit)
		{
			continue;
		}
		if (code >> 27 != 0u)
		{
			open_node(count, code, p, limit);
			continue;
		}
		vec4 squares = triangle_squares(int(code), p);
		for (int k = 0; k < 4; ++k)
		{
			if (squares[k] < limit)
			{
				limit = squares[k];
				at_out = 4 * int(code) + k;
			}
		}
	}
	return limit;
}

// Nearest point of a triangle to p, and what it lies on.
int nearest_of_triangle(dvec3 a, dvec3 b, dvec3 c, dvec3 p, out dvec3 nearest_out)
{
	precise dvec3 ab = b - a, ac = c - a, ap = p - a;
	precise double d1 = product3(ab, ap), d2 = product3(ac, ap);
	if (d1 <= 0.0lf && d2 <= 0.0lf)
	{
		nearest_out = a;
		return FEATURE_CORNER_0;
	}
	precise dvec3 bp = p - b;
	precise double d3 = product3(ab, bp), d4 = product3(ac, bp);
	if (d3 >= 0.0lf && d4 <= d3)
	{
		nearest_out = b;
		return FEATURE_CORNER_0 + 1;
	}
	precise double vc = d1 * d4 - d3 * d2;
	if (vc <= 0.0lf && d1 >= 0.0lf && d3 <= 0.0lf)
	{
		precise double t = d1 / (d1 - d3);
		precise dvec3 q = a + t * ab;
		nearest_out = q;
		return FEATURE_EDGE_0;
	}
	precise dvec3 cp = p - c;
	precise double d5 = product3(ab, cp), d6 = product3(ac, cp);
	if (d6 >= 0.0lf && d5 <= d6)
	{
		nearest_out = c;
		return FEATURE_CORNER_0 + 2;
	}
	precise double vb = d5 * d2 - d1 * d6;
	if (vb <= 0.0lf && d2 >= 0.0lf && d6 <= 0.0lf)
	{
		precise double t = d2 / (d2 - d6);
		precise dvec3 q = a + t * ac;
		nearest_out = q;
		return FEATURE_EDGE_0 + 2;
	}
	precise double va = d3 * d6 - d5 * d4;
	if (va <= 0.0lf && d4 - d3 >= 0.0lf && d5 - d6 >= 0.0lf)
	{
		precise double t = (d4 - d3) / ((d4 - d3) + (d5 - d6));
		precise dvec3 bc = c - b, q = b + t * bc;
		nearest_out = q;
		return FEATURE_EDGE_0 + 1;
	}
	precise double sum = va + vb + vc;
	precise double f = vb / sum, g = vc / sum;
	precise dvec3 first = a + f * ab, q = first + g * ac;
	nearest_out = q;
	return FEATURE_FACE;
}

// The nearest triangle by doubles, among those that floats put below limit; of two as near the lower number.
Found nearest_below(dvec3 place, vec3 p, float limit)
{
	Found found = Found(1.7976931348623157e308lf, dvec3(0.0lf), -1, FEATURE_FACE);
	int count = 1;
	stack_squares[0] = 0.0;
	stack_codes[0] = tree_root();
	while (count > 0)
	{
		--count;
		uint code = stack_codes[count];
		if (code >> 27 != 0u)
		{
			open_node(count, code, p, limit);
			continue;
		}
		vec4 squares = triangle_squares(int(code), p);
		for (int k = 0; k < 4; ++k)
		{
			int at = 4 * int(code) + k;
			if (squares[k] <= limit && at < tree.triangle_count)
			{
				int triangle = tree_words[tree.order + at];
				dvec3 point;
				int feature = nearest_of_triangle(tree_corner(triangle, 0), tree_corner(triangle, 1),
				                                  tree_corner(triangle, 2), place, point);
				precise dvec3 d = place - point;
				precise double square = product3(d, d);
				if (square < found.square || (square == found.square && triangle < found.triangle))
				{
					found = Found(square, point, triangle, feature);
				}
			}
		}
	}
	return found;
}

// What rounding may hide, added to a distance found by floats.
float widened(dvec3 place, float square)
{
	double farthest = larger2(tree.extent, larger2(abs(place.x), larger2(abs(place.y), abs(place.z))));
	precise double root = sqrt(double(square));
	precise double distance = root * (1.0lf + 4e-7lf) + 4e-7lf * farthest;
	precise float wide = float(distance * distance) * 1.00000011920928955;
	return wide;
}

// Of the square of a distance, for places within reach; reach below 0 = however far.
float limit_of(dvec3 place, double reach)
{
	const double most = 16.0lf * 1e18lf * 1e18lf;
	precise double square = reach * reach;
	return widened(place, float(reach < 0.0lf || square > most ? most : square));
}

vec3 floats_of(dvec3 place)
{
	return vec3(float(place.x), float(place.y), float(place.z));
}

// Squares of floats do not overflow; never so for a place that is no number.
bool fits_floats(dvec3 place)
{
	return abs(place.x) < 1e18lf && abs(place.y) < 1e18lf && abs(place.z) < 1e18lf;
}

// False when nothing is nearer than reach (below 0 = however far). place relative to the middle, and fits_floats.
bool find_nearest(dvec3 place, double reach, out Found found)
{
	vec3 p = floats_of(place);
	int at;
	float square = least_square(p, limit_of(place, reach), at);
	found = nearest_below(place, p, widened(place, square));
	precise double distance = sqrt(found.square);
	return found.triangle >= 0 && (reach < 0.0lf || distance < reach);
}

// ---- normals -------------------------------------------------------------------------------------------------------

#ifdef USE_NORMALS
// Sum of the faces around the edge between two vertices.
dvec3 edge_normal(int from, int to)
{
	precise dvec3 sum = dvec3(tree.zero);
	for (int i = tree_words[tree.around_first + from]; i < tree_words[tree.around_first + from + 1]; ++i)
	{
		int t = tree_words[tree.around + i];
		if (corner_number(t, 0) == to || corner_number(t, 1) == to || corner_number(t, 2) == to)
		{
			sum = sum + unit3(face_normal(t));
		}
	}
	return sum;
}

dvec3 feature_normal(Found found)
{
	if (found.feature >= FEATURE_CORNER_0)
	{
		int at = 3 * corner_number(found.triangle, found.feature - FEATURE_CORNER_0);
		return dvec3(tree_normals[at], tree_normals[at + 1], tree_normals[at + 2]);
	}
	if (found.feature >= FEATURE_EDGE_0)
	{
		int edge = found.feature - FEATURE_EDGE_0, next = edge == 2 ? 0 : edge + 1;
		return edge_normal(corner_number(found.triangle, edge), corner_number(found.triangle, next));
	}
	return face_normal(found.triangle);
}
#endif

// ---- winding -------------------------------------------------------------------------------------------------------

#ifdef USE_DIPOLES
// atan(y / x) of the right quarter, within 4e-16: GLSL has none for doubles. The share of the smaller of |x| and |y| is
// cut at the nearest eighth, of which the angle is known; the rest is a series of small terms.
double turn_angle(double y, double x)
{
	const double eighths[9] = double[9](0.0lf, 0.12435499454676143503lf, 0.24497866312686415417lf,
	                                    0.35877067027057222040lf, 0.46364760900080611621lf, 0.55859931534356243597lf,
	                                    0.64350110879328438680lf, 0.71882999962162450542lf, 0.78539816339744830962lf);
	double ax = abs(x), ay = abs(y);
	double small = ax < ay ? ax : ay, large = ax < ay ? ay : ax;
	double share = large > 0.0lf ? small / large : 0.0lf;
	int eighth = int(share * 8.0lf + 0.5lf);
	double cut = double(eighth) * 0.125lf;
	double u = (share - cut) / (1.0lf + share * cut), s = u * u;
	double series = 1.0lf - s * (1.0lf / 3.0lf - s * (0.2lf - s * (1.0lf / 7.0lf - s * (1.0lf / 9.0lf - s * (1.0lf / 11.0lf -
	                s * (1.0lf / 13.0lf))))));
	double angle = eighths[eighth] + u * series;
	angle = ay > ax ? 1.57079632679489661923lf - angle : angle;
	angle = (unpackDouble2x32(x).y >> 31) != 0u ? 3.14159265358979323846lf - angle : angle;
	// A minus zero is negative too: a place in the plane of a face, on it or beside it, is a half turn one way or the other.
	return (unpackDouble2x32(y).y >> 31) != 0u ? -angle : angle;
}

// Solid angle over 4 pi of a triangle seen from p.
double triangle_winding(int triangle, dvec3 p)
{
	precise dvec3 a = tree_corner(triangle, 0) - p, b = tree_corner(triangle, 1) - p, c = tree_corner(triangle, 2) - p;
	precise double la = sqrt(product3(a, a)), lb = sqrt(product3(b, b)), lc = sqrt(product3(c, c));
	precise double over = product3(a, cross3(b, c));
	precise double under = la * lb * lc + product3(a, b) * lc + product3(b, c) * la + product3(c, a) * lb;
	precise double share = turn_angle(over, under) / 6.28318530717958647692lf;
	return share;
}

// Of a place relative to the middle that fits_floats.
double winding_at(dvec3 place)
{
	vec3 p = floats_of(place);
	int count = 1;
	precise double total = tree.zero;
	stack_codes[0] = tree_root();
	while (count > 0)
	{
		--count;
		uint code = stack_codes[count];
		int level = int(code >> 27) - 1, index = int(code & 0x7ffffffu);
		if (level < 0)
		{
			int end = 4 * index + 4 < tree.triangle_count ? 4 * index + 4 : tree.triangle_count;
			for (int i = 4 * index; i < end; ++i)
			{
				total = total + triangle_winding(tree_words[tree.order + i], place);
			}
			continue;
		}
		int at = 14 * (tree.level_first[level] + index);
		precise vec4 rx = tree_dipoles[at] - p.x, ry = tree_dipoles[at + 1] - p.y, rz = tree_dipoles[at + 2] - p.z;
		precise vec4 square = product_columns(rx, ry, rz, rx, ry, rz);
		vec4 reach = tree_dipoles[at + 3];
		bvec4 is_far = bvec4(square.x > reach.x, square.y > reach.y, square.z > reach.z, square.w > reach.w);
		precise vec4 inverse = 1.0 / vec4(is_far.x ? square.x : 1.0, is_far.y ? square.y : 1.0,
		                                  is_far.z ? square.z : 1.0, is_far.w ? square.w : 1.0);
		precise vec4 cube = inverse * sqrt(inverse);
		precise vec4 sum = tree_dipoles[at + 5] * rx + tree_dipoles[at + 6] * ry + tree_dipoles[at + 7] * rz;
		vec4 xx = tree_dipoles[at + 8], yy = tree_dipoles[at + 9], zz = tree_dipoles[at + 10];
		precise vec4 along = xx * rx * rx + yy * ry * ry + zz * rz * rz + tree_dipoles[at + 11] * rx * ry +
		                     tree_dipoles[at + 12] * rx * rz + tree_dipoles[at + 13] * ry * rz;
		precise vec4 correction = (xx + yy + zz) - 3.0 * along * inverse;
		precise vec4 both = sum + correction, part = both * cube;
		precise double far = tree.zero;
		for (int k = 0; k < 4; ++k)
		{
			if (is_far[k])
			{
				far = far + double(part[k]);
			}
		}
		precise double share = far / (4.0lf * 3.14159265358979323846lf);
		total = total + share;
		for (int k = 0; k < 4; ++k)
		{
			if (!is_far[k])
			{
				stack_codes[count] = uint(level) << 27 | uint(4 * index + k);
				++count;
			}
		}
	}
	precise double turned = tree.turn * total;
	return turned;
}
#endif

// ---- inside --------------------------------------------------------------------------------------------------------

#if defined(USE_NORMALS) && defined(USE_DIPOLES)
bool is_beyond_bounds(dvec3 place)
{
	bool is_within = true;
	for (int k = 0; k < 3; ++k)
	{
		is_within = is_within && place[k] >= tree.bounds_min[k] && place[k] <= tree.bounds_max[k];
	}
	return !is_within;
}

// SAND_SIDE_IN, SAND_SIDE_OUT, or SAND_SIDE_UNSURE where the winding number is so near to a half that atan2's last bits
// might decide: the host has the last word there. place: as the mesh has it; at: relative to the middle.
int side_at(dvec3 place, dvec3 at, Found found)
{
	if (is_beyond_bounds(place))
	{
		return SAND_SIDE_OUT;
	}
	if (tree.is_clean != 0)
	{
		precise dvec3 d = at - found.point;
		precise double side = tree.turn * product3(d, feature_normal(found));
		if (side != 0.0lf || found.square == 0.0lf)
		{
			return side < 0.0lf ? SAND_SIDE_IN : SAND_SIDE_OUT;
		}
	}
	double winding = winding_at(at);
	return abs(winding - 0.5lf) < tree.doubt ? SAND_SIDE_UNSURE : winding > 0.5lf ? SAND_SIDE_IN : SAND_SIDE_OUT;
}

int side_of(dvec3 place)
{
	dvec3 at = relative_place(place);
	Found found = Found(0.0lf, dvec3(0.0lf), 0, FEATURE_FACE);
	if (tree.is_clean != 0 && !is_beyond_bounds(place))
	{
		find_nearest(at, -1.0lf, found);
	}
	return side_at(place, at, found);
}
#endif
#endif
