// collider: meshes that grains bounce off. Comes in: a place. Goes out: triangles near it, or where a sphere touches.
// The twin of csrc/collider.c, same bits; how and why stand there. Needs engine.glsl for control.zero.
// With USE_NEARS and USE_NEAR_LOADS also touch(): candidates live in the records of the triangles near the sphere and
// in the six numbers per triangle that loads go to afterwards, for they would fill a private array of kilobytes.
#ifndef SAND_COLLIDER_GLSL
#define SAND_COLLIDER_GLSL
#include "vector.glsl"

layout(std430, binding = SAND_BIND_MESHES) readonly buffer MeshBlock
{
	SandGlCollider meshes[];
};
layout(std430, binding = SAND_BIND_MESH_WORDS) readonly buffer MeshWordBlock
{
	int mesh_words[];
};
layout(std430, binding = SAND_BIND_MESH_FLOATS) readonly buffer MeshFloatBlock
{
	float mesh_floats[];
};
layout(std430, binding = SAND_BIND_POSES) readonly buffer PoseBlock
{
	SandGlPose poses[];
};

const double THIN = 1e-18lf;
const double LEVEL = 1e-13lf;
const double TOUCHING = 1e-9lf;
const double FLAT_COSINE = 0.99lf;
const double FLAT_SLOPE = 1e-3lf;
const double BEHIND = 0.5lf;
const double HOLD = 0.1lf;
const double FLAT_APART = 0.3lf;
const double CARRYING = 1e-9lf;
const int CANDIDATE_LIMIT = 64;
const int SAND_HIT_LIMIT = 8;
const int FACE = 7;
const int NO_AREA = 0;
const int FAR_OFF = 1;
const int NEAR_BY = 2;

// ---- vertices ------------------------------------------------------------------------------------------------------

dvec3 mesh_vertex(int at)
{
	return dvec3(double(mesh_floats[at]), double(mesh_floats[at + 1]), double(mesh_floats[at + 2]));
}

// In the axes that the mesh is searched in: its own, or the world's when it changes shape.
dvec3 vertex_at(int c, int vertex)
{
	precise dvec3 here = mesh_vertex(poses[c].here + 3 * vertex);
	precise double share = poses[c].share;
	if (share > 0.0lf)
	{
		here = here + share * (mesh_vertex(poses[c].next + 3 * vertex) - here);
	}
	return here;
}

ivec3 corners_of(int c, int triangle)
{
	int at = meshes[c].triangles + 3 * triangle;
	return ivec3(mesh_words[at], mesh_words[at + 1], mesh_words[at + 2]);
}

dvec4 pose_orientation(int c)
{
	return dvec4(poses[c].orientation[0], poses[c].orientation[1], poses[c].orientation[2], poses[c].orientation[3]);
}

dvec3 pose_position(int c)
{
	return dvec3(poses[c].position[0], poses[c].position[1], poses[c].position[2]);
}

// A place of the world in the axes that the mesh is searched in.
dvec3 carry(int c, dvec3 p)
{
	if (meshes[c].track < 0)
	{
		return p;
	}
	precise dvec3 from = p - pose_position(c);
	return turn_back(pose_orientation(c), from);
}

// Origin of the torques told of it, m.
dvec3 collider_origin(int c)
{
	return meshes[c].track < 0 ? dvec3(meshes[c].origin[0], meshes[c].origin[1], meshes[c].origin[2])
	                           : pose_position(c);
}

// ---- one triangle --------------------------------------------------------------------------------------------------

struct Foot
{
	dvec3 normal; // not unit
	double area2; // square of its length
	double lift;  // of p along it: height times length
	// Only when near by:
	dvec3 d;       // m, from the nearest point to p
	double square; // m^2
	dvec3 weights;
	int feature; // a bit for each corner of the triangle that it runs between
};

void find_nearest(inout Foot foot, dvec3 ab, dvec3 ac, dvec3 ap)
{
	precise double d1 = product3(ab, ap), d2 = product3(ac, ap);
	if (d1 <= 0.0lf && d2 <= 0.0lf)
	{
		foot.d = ap;
		foot.weights = dvec3(1.0lf, 0.0lf, 0.0lf);
		foot.feature = 1;
		return;
	}
	precise dvec3 bp = ap - ab;
	precise double d3 = product3(ab, bp), d4 = product3(ac, bp);
	if (d3 >= 0.0lf && d4 <= d3)
	{
		foot.d = bp;
		foot.weights = dvec3(0.0lf, 1.0lf, 0.0lf);
		foot.feature = 2;
		return;
	}
	precise double area_c = product3(foot.normal, cross3(ab, ap));
	if (area_c <= 0.0lf && d1 >= 0.0lf && d3 <= 0.0lf)
	{
		precise double share = d1 / (d1 - d3), rest = 1.0lf - share;
		precise dvec3 d = ap - share * ab;
		foot.d = d;
		foot.weights = dvec3(rest, share, 0.0lf);
		foot.feature = 3;
		return;
	}
	precise dvec3 cp = ap - ac;
	precise double d5 = product3(ab, cp), d6 = product3(ac, cp);
	if (d6 >= 0.0lf && d5 <= d6)
	{
		foot.d = cp;
		foot.weights = dvec3(0.0lf, 0.0lf, 1.0lf);
		foot.feature = 4;
		return;
	}
	precise double area_b = product3(foot.normal, cross3(ap, ac));
	if (area_b <= 0.0lf && d2 >= 0.0lf && d6 <= 0.0lf)
	{
		precise double share = d2 / (d2 - d6), rest = 1.0lf - share;
		precise dvec3 d = ap - share * ac;
		foot.d = d;
		foot.weights = dvec3(rest, 0.0lf, share);
		foot.feature = 5;
		return;
	}
	precise dvec3 bc = ac - ab;
	precise double area_a = product3(foot.normal, cross3(bc, bp));
	if (area_a <= 0.0lf && d4 >= d3 && d5 >= d6)
	{
		precise double share = (d4 - d3) / ((d4 - d3) + (d5 - d6)), rest = 1.0lf - share;
		precise dvec3 d = bp - share * bc;
		foot.d = d;
		foot.weights = dvec3(0.0lf, rest, share);
		foot.feature = 6;
		return;
	}
	precise double sum = area_a + area_b + area_c;
	precise dvec3 weights = dvec3(area_a / sum, area_b / sum, area_c / sum);
	precise dvec3 d = foot.normal * (foot.lift / foot.area2);
	foot.d = d;
	foot.weights = weights;
	foot.feature = FACE;
}

// Its normal, area and the lift of p.
int find_plane(int c, ivec3 corners, dvec3 p, out dvec3 ab_out, out dvec3 ac_out, out dvec3 ap_out, out Foot foot)
{
	precise dvec3 a = vertex_at(c, corners.x);
	precise dvec3 ab = vertex_at(c, corners.y) - a, ac = vertex_at(c, corners.z) - a, ap = p - a;
	precise dvec3 normal = cross3(ab, ac);
	precise double area2 = product3(normal, normal), limit = THIN * product3(ab, ab) * product3(ac, ac);
	foot.normal = normal;
	foot.area2 = area2;
	foot.lift = product3(ap, normal);
	foot.d = ap;
	foot.square = 0.0lf;
	foot.weights = dvec3(0.0lf);
	foot.feature = 0;
	ab_out = ab;
	ac_out = ac;
	ap_out = ap;
	return area2 > limit ? NEAR_BY : NO_AREA;
}

int find_foot(int c, ivec3 corners, dvec3 p, double reach, out Foot foot)
{
	dvec3 ab, ac, ap;
	if (find_plane(c, corners, p, ab, ac, ap, foot) == NO_AREA)
	{
		return NO_AREA;
	}
	precise double lift2 = foot.lift * foot.lift, limit = reach * reach * foot.area2;
	if (lift2 >= limit)
	{
		return FAR_OFF;
	}
	find_nearest(foot, ab, ac, ap);
	foot.square = product3(foot.d, foot.d);
	return NEAR_BY;
}

// ---- search --------------------------------------------------------------------------------------------------------

// A walk through the boxes that meet a ball. The bits of children still to see are kept per level, four each.
struct Search
{
	dvec3 own; // m, in the collider's axes
	double reach;
	vec3 low, high;
	int level, index;
	uvec2 bits; // of levels 0 to 7 and 8 to 15
};

uint meeting(int c, int level, int index, vec3 low, vec3 high)
{
	int at = meshes[c].nodes + 24 * (meshes[c].level_first[level] + index);
	uint bits = 0u;
	for (int i = 0; i < 4; ++i)
	{
		bool meets = mesh_floats[at + i] <= high.x && mesh_floats[at + 12 + i] >= low.x &&
		             mesh_floats[at + 4 + i] <= high.y && mesh_floats[at + 16 + i] >= low.y &&
		             mesh_floats[at + 8 + i] <= high.z && mesh_floats[at + 20 + i] >= low.z;
		bits |= meets ? 1u << uint(i) : 0u;
	}
	return bits;
}

uint level_bits(Search s)
{
	return (s.level < 8 ? s.bits.x : s.bits.y) >> uint(4 * (s.level & 7)) & 15u;
}

void set_level_bits(inout Search s, uint bits)
{
	uint shift = uint(4 * (s.level & 7));
	if (s.level < 8)
	{
		s.bits.x = (s.bits.x & ~(15u << shift)) | bits << shift;
	}
	else
	{
		s.bits.y = (s.bits.y & ~(15u << shift)) | bits << shift;
	}
}

float within_floats(double x)
{
	const double most = 3.40282346638528859812e+38lf;
	precise double cut = x > -most ? x : -most;
	cut = cut < most ? cut : most;
	return float(cut);
}

Search start_search(int c, dvec3 p, double reach)
{
	Search s;
	s.own = carry(c, p);
	precise double wide = reach * (1.0lf + CARRYING) + 2.2250738585072014e-308lf;
	precise dvec3 low = s.own - wide, high = s.own + wide;
	s.reach = wide;
	s.low = vec3(within_floats(low.x), within_floats(low.y), within_floats(low.z));
	s.high = vec3(within_floats(high.x), within_floats(high.y), within_floats(high.z));
	s.level = meshes[c].level_count - 1;
	s.index = 0;
	s.bits = uvec2(0u);
	set_level_bits(s, meeting(c, s.level, 0, s.low, s.high));
	return s;
}

// The next place in the order of the triangles whose box meets the ball's, -1 at the end.
int next_triangle(int c, inout Search s)
{
	int top = meshes[c].level_count - 1;
	while (s.level <= top)
	{
		uint bits = level_bits(s);
		if (bits == 0u)
		{
			++s.level;
			s.index /= 4;
			continue;
		}
		int child = 4 * s.index + findLSB(bits);
		set_level_bits(s, bits & (bits - 1u));
		if (s.level == 0)
		{
			return child;
		}
		--s.level;
		s.index = child;
		set_level_bits(s, meeting(c, s.level, child, s.low, s.high));
	}
	return -1;
}

// False when no triangle is near; a box of one within reach is enough for true.
bool collider_is_near(int c, dvec3 p, double reach)
{
	Search s = start_search(c, p, reach);
	return next_triangle(c, s) >= 0;
}

bool is_near_triangle(int c, int triangle, dvec3 own, double reach)
{
	Foot foot;
	precise double limit = reach * reach;
	return find_foot(c, corners_of(c, triangle), own, reach, foot) == NEAR_BY && foot.square < limit;
}

// How many triangles have a point within reach of p, perhaps a few more. With USE_NEARS their numbers go to nears[first
// .. first + capacity), ascending.
int near_triangles(int c, dvec3 p, double reach, int first, int capacity)
{
	Search s = start_search(c, p, reach);
	int count = 0;
	for (int place = next_triangle(c, s); place >= 0; place = next_triangle(c, s))
	{
		int triangle = mesh_words[meshes[c].order + place];
		if (is_near_triangle(c, triangle, s.own, s.reach))
		{
#ifdef USE_NEARS
			if (count < capacity)
			{
				int at = first + count;
				for (; at > first && nears[at - 1].triangle > triangle; --at)
				{
					nears[at].triangle = nears[at - 1].triangle;
				}
				nears[at].triangle = triangle;
			}
#endif
			++count;
		}
	}
	return count;
}

// ---- touch ---------------------------------------------------------------------------------------------------------

#if defined(USE_NEARS) && defined(USE_NEAR_LOADS)
struct Hit
{
	double distance; // m, of p from the surface; negative when p was pressed through it
	dvec3 normal;    // unit, from the surface to the side that p belongs to
	dvec3 velocity;  // m/s, of the surface there
	int slot;
};

// The call as it was made, in the axes that the mesh is searched in.
struct Call
{
	int c;
	int first, count; // of the triangles
	dvec3 p;
	double reach;
};

// What is remembered of the triangle in a slot while the call runs: the square of its distance, below 0 when it is no
// candidate; its signed distance, until that is known the lift (m); its feature, and whether p is behind it.
double candidate_square(Call call, int slot)
{
	return near_loads[6 * (call.first + slot)];
}

double candidate_distance(Call call, int slot)
{
	return near_loads[6 * (call.first + slot) + 1];
}

const int PRESSED = 8;
const int FALSE_ONE = 16;

int candidate_flags(Call call, int slot)
{
	return int(near_loads[6 * (call.first + slot) + 2]);
}

void set_candidate(Call call, int slot, double square, double distance, int flags)
{
	int at = 6 * (call.first + slot);
	near_loads[at] = square;
	near_loads[at + 1] = distance;
	near_loads[at + 2] = double(flags);
}

ivec3 slot_corners(Call call, int slot)
{
	return corners_of(call.c, nears[call.first + slot].triangle);
}

float known_side(float side)
{
	return abs(side) == 3.0 ? 0.0 : side < 0.0 ? -1.0 : side > 0.0 ? 1.0 : 0.0;
}

float slot_side(Call call, int slot)
{
	return nears[call.first + slot].side;
}

void note_side(Call call, int slot, bool is_over_face, double lift)
{
	float sign_of = lift < 0.0lf ? -1.0 : 1.0, side = slot_side(call, slot);
	if (side == 0.0)
	{
		nears[call.first + slot].side = lift < 0.0lf ? -3.0 : 3.0;
	}
	else if (!is_over_face)
	{
		nears[call.first + slot].side = side == sign_of ? side * 4.0 : side * 2.0;
	}
}

bool has_corner(ivec3 corners, int vertex)
{
	return corners.x == vertex || corners.y == vertex || corners.z == vertex;
}

// True when the triangle contains the whole feature of another one.
bool contains(ivec3 corners, ivec3 others, int feature)
{
	return ((feature & 1) == 0 || has_corner(corners, others.x)) &&
	       ((feature & 2) == 0 || has_corner(corners, others.y)) &&
	       ((feature & 4) == 0 || has_corner(corners, others.z));
}

bool meet(ivec3 a, ivec3 b)
{
	return has_corner(a, b.x) || has_corner(a, b.y) || has_corner(a, b.z);
}

bool is_own(ivec3 corners, int feature, int vertex)
{
	return ((feature & 1) != 0 && vertex == corners.x) || ((feature & 2) != 0 && vertex == corners.y) ||
	       ((feature & 4) != 0 && vertex == corners.z);
}

// Whether no triangle around an edge or corner leads nearer to p.
bool is_minimum(Call call, ivec3 own, Foot foot)
{
	int vertex = (foot.feature & 1) != 0 ? own.x : (foot.feature & 2) != 0 ? own.y : own.z;
	precise dvec3 from = vertex_at(call.c, vertex);
	int at = meshes[call.c].around_first + vertex, last = mesh_words[at + 1];
	for (int i = mesh_words[at]; i < last; ++i)
	{
		ivec3 corners = corners_of(call.c, mesh_words[meshes[call.c].around + i]);
		if (!contains(corners, own, foot.feature))
		{
			continue;
		}
		for (int k = 0; k < 3; ++k)
		{
			if (is_own(own, foot.feature, corners[k]))
			{
				continue;
			}
			precise dvec3 to = vertex_at(call.c, corners[k]) - from;
			precise double limit = LEVEL * (foot.square + product3(to, to)), slope = product3(foot.d, to);
			if (slope > limit)
			{
				return false;
			}
		}
	}
	return true;
}

int look(Call call, int slot, out ivec3 corners, out Foot foot)
{
	corners = slot_corners(call, slot);
	return find_foot(call.c, corners, call.p, call.reach, foot);
}

// Height of p in m over a foot's plane.
double unit_lift(Foot foot)
{
	precise double scale = 1.0lf / sqrt(foot.area2), lift = foot.lift * scale;
	return lift;
}

dvec3 unit_normal(Foot foot)
{
	precise double scale = 1.0lf / sqrt(foot.area2);
	precise dvec3 normal = foot.normal * scale;
	return normal;
}

// When there are too many the farthest gives way.
void make_room(Call call, int slot, double square, inout int count, out bool has_room)
{
	has_room = true;
	if (count < CANDIDATE_LIMIT)
	{
		return;
	}
	int farthest = -1;
	double most = -1.0lf;
	for (int i = 0; i < slot; ++i)
	{
		double other = candidate_square(call, i);
		if (other > most)
		{
			most = other;
			farthest = i;
		}
	}
	if (most <= square)
	{
		has_room = false;
		return;
	}
	set_candidate(call, farthest, -1.0lf, 0.0lf, 0);
	--count;
}

int find_candidates(Call call)
{
	int count = 0, nearest = -1;
	precise double reach2 = call.reach * call.reach, least = reach2;
	// The last turn looks at the nearest again, when by rounding there is no minimum.
	for (int turn_number = 0; turn_number <= call.count; ++turn_number)
	{
		bool is_again = turn_number == call.count;
		int slot = is_again ? nearest : turn_number;
		if (is_again && (count > 0 || nearest < 0))
		{
			break;
		}
		ivec3 corners;
		Foot foot;
		int where = look(call, slot, corners, foot);
		bool is_candidate = is_again;
		if (!is_again)
		{
			set_candidate(call, slot, -1.0lf, 0.0lf, 0);
			if (where == NO_AREA)
			{
				continue;
			}
			note_side(call, slot, where == NEAR_BY && foot.feature == FACE, foot.lift);
			if (where == FAR_OFF || !(foot.square < reach2))
			{
				continue;
			}
			if (foot.square < least)
			{
				least = foot.square;
				nearest = slot;
			}
			is_candidate = foot.feature == FACE || is_minimum(call, corners, foot);
		}
		bool has_room = false;
		if (is_candidate)
		{
			make_room(call, slot, foot.square, count, has_room);
		}
		if (has_room)
		{
			set_candidate(call, slot, foot.square, unit_lift(foot), foot.feature);
			++count;
		}
	}
	return count;
}

double lift_over(Call call, int slot, dvec3 p, out double length_out)
{
	dvec3 ab, ac, ap;
	Foot foot;
	int where = find_plane(call.c, slot_corners(call, slot), p, ab, ac, ap, foot);
	length_out = where == NO_AREA ? 0.0lf : sqrt(foot.area2);
	return foot.lift;
}

bool is_on_feature(Call call, double square)
{
	precise double limit = TOUCHING * TOUCHING * call.reach * call.reach;
	return square <= limit;
}

bool is_pressed(Call call, int slot)
{
	precise double square = candidate_square(call, slot), away = sqrt(square);
	precise double deepest = double(known_side(slot_side(call, slot))) * candidate_distance(call, slot);
	int feature = candidate_flags(call, slot);
	if (feature == FACE || !(deepest < 0.0lf) || is_on_feature(call, square))
	{
		return deepest < 0.0lf;
	}
	ivec3 own = slot_corners(call, slot);
	for (int other = 0; other < call.count; ++other)
	{
		precise double side = double(known_side(slot_side(call, other)));
		if (side == 0.0lf || !contains(slot_corners(call, other), own, feature))
		{
			continue;
		}
		double scale;
		precise double over = lift_over(call, other, call.p, scale), lift = side * over;
		if (scale > 0.0lf)
		{
			precise double limit = 1e-6lf * away * scale, depth = lift / scale;
			if (lift > limit)
			{
				return false;
			}
			deepest = depth < deepest ? depth : deepest;
		}
	}
	precise double limit = -BEHIND * away;
	return deepest < limit;
}

// Where p is on the side it belongs to, off the face or feature that holds it there.
dvec3 clear_place(Call call, int slot)
{
	ivec3 corners;
	Foot foot;
	look(call, slot, corners, foot);
	precise double height = sqrt(foot.square), side = double(known_side(slot_side(call, slot)));
	precise double held = HOLD * call.reach, lifted = height > held ? height : held;
	precise double side_of_feature = (candidate_flags(call, slot) & PRESSED) != 0 ? -1.0lf : 1.0lf;
	precise dvec3 n;
	if (foot.feature == FACE || is_on_feature(call, foot.square))
	{
		n = side * unit_normal(foot);
	}
	else
	{
		n = side_of_feature * foot.d / height;
	}
	precise dvec3 place = call.p - foot.d + lifted * n;
	return place;
}

// 1 when the two have an edge in common and are wound alike, -1 when they are wound against each other, 0 when they
// have none.
int winding(ivec3 a, ivec3 b)
{
	for (int i = 0; i < 3; ++i)
	{
		int here = i == 0 ? a.x : i == 1 ? a.y : a.z, next = i == 0 ? a.y : i == 1 ? a.z : a.x;
		for (int k = 0; k < 3; ++k)
		{
			int own = k == 0 ? b.x : k == 1 ? b.y : b.z, before = k == 0 ? b.z : k == 1 ? b.x : b.y,
			    after = k == 0 ? b.y : k == 1 ? b.z : b.x;
			if (here == own && next == before)
			{
				return 1;
			}
			if (here == own && next == after)
			{
				return -1;
			}
		}
	}
	return 0;
}

// The triangles around the one that holds p, in the fourth numbers of the slots.
int ring_slot(Call call, int place)
{
	return int(near_loads[6 * (call.first + place) + 3]);
}

void set_ring_slot(Call call, int place, int slot)
{
	near_loads[6 * (call.first + place) + 3] = double(slot);
}

// Around the triangle that holds p the open sides follow its own from edge to edge.
void spread_side(Call call, int holding)
{
	int count = 1, settled = 1;
	ivec3 held = slot_corners(call, holding);
	set_ring_slot(call, 0, holding);
	nears[call.first + holding].side = known_side(slot_side(call, holding));
	for (int slot = 0; slot < call.count && count < CANDIDATE_LIMIT; ++slot)
	{
		if (abs(slot_side(call, slot)) >= 2.0 && meet(slot_corners(call, slot), held))
		{
			set_ring_slot(call, count, slot);
			++count;
		}
	}
	for (int from = 0; from < settled; ++from)
	{
		int settled_slot = ring_slot(call, from);
		ivec3 corners = slot_corners(call, settled_slot);
		for (int i = settled; i < count; ++i)
		{
			int slot = ring_slot(call, i), turn_of = winding(corners, slot_corners(call, slot));
			if (turn_of != 0)
			{
				set_ring_slot(call, i, ring_slot(call, settled));
				set_ring_slot(call, settled, slot);
				++settled;
				nears[call.first + slot].side = float(turn_of) * slot_side(call, settled_slot);
			}
		}
	}
}

// Open sides get their value. holding = slot, or -1.
void settle_sides(Call call, int holding)
{
	dvec3 place = call.p;
	if (holding >= 0)
	{
		spread_side(call, holding);
		place = clear_place(call, holding);
	}
	for (int slot = 0; slot < call.count; ++slot)
	{
		float side = slot_side(call, slot), size = abs(side);
		bool is_back = side < 0.0;
		if (size == 2.0 && holding < 0)
		{
			is_back = !is_back;
		}
		else if (size == 3.0 && holding >= 0)
		{
			double scale;
			is_back = lift_over(call, slot, place, scale) < 0.0lf;
		}
		nears[call.first + slot].side = size == 0.0 ? 0.0 : is_back ? -1.0 : 1.0;
	}
}

void judge(Call call)
{
	int holding = -1;
	double nearest = 0.0lf;
	for (int slot = 0; slot < call.count; ++slot)
	{
		double square = candidate_square(call, slot);
		if (square < 0.0lf)
		{
			continue;
		}
		bool is_behind = is_pressed(call, slot);
		if (is_behind)
		{
			set_candidate(call, slot, square, candidate_distance(call, slot), candidate_flags(call, slot) | PRESSED);
		}
		precise double limit = HOLD * HOLD * call.reach * call.reach;
		bool holds = known_side(slot_side(call, slot)) != 0.0 && (is_behind || square < limit);
		if (holds && (holding < 0 || square < nearest))
		{
			holding = slot;
			nearest = square;
		}
	}
	settle_sides(call, holding);
	for (int slot = 0; slot < call.count; ++slot)
	{
		precise double square = candidate_square(call, slot);
		if (square < 0.0lf)
		{
			continue;
		}
		int feature = candidate_flags(call, slot) & FACE;
		bool is_behind = (candidate_flags(call, slot) & PRESSED) != 0;
		precise double away = sqrt(square), distance = is_behind ? -away : away;
		if (feature == FACE || is_on_feature(call, square))
		{
			distance = double(slot_side(call, slot)) * candidate_distance(call, slot);
			is_behind = distance < 0.0lf;
		}
		set_candidate(call, slot, square, distance, feature | (is_behind ? PRESSED : 0));
	}
}

// Edges and corners of a triangle that p is pressed through are seen from the wrong side. Of triangles that meet, and
// that it is behind, it is pressed through the nearest one.
bool is_false(Call call, int slot)
{
	int flags = candidate_flags(call, slot);
	bool is_behind = (flags & PRESSED) != 0;
	if ((flags & FACE) == FACE && !is_behind)
	{
		return false;
	}
	double square = candidate_square(call, slot);
	ivec3 corners = slot_corners(call, slot);
	for (int i = 0; i < call.count; ++i)
	{
		double other = candidate_square(call, i);
		if (other < 0.0lf || (candidate_flags(call, i) & PRESSED) == 0)
		{
			continue;
		}
		bool is_nearer = other < square || (other == square && i < slot);
		if ((!is_behind || is_nearer) && meet(corners, slot_corners(call, i)))
		{
			return true;
		}
	}
	return false;
}

// The next candidate by distance, then slot; -1 at the end.
int next_candidate(Call call, double last, int last_slot)
{
	int best = -1;
	double least = 0.0lf;
	for (int slot = 0; slot < call.count; ++slot)
	{
		double away = abs(candidate_distance(call, slot));
		bool is_open = candidate_square(call, slot) >= 0.0lf && (candidate_flags(call, slot) & FALSE_ONE) == 0;
		if (is_open && (away > last || (away == last && slot > last_slot)) && (best < 0 || away < least))
		{
			best = slot;
			least = away;
		}
	}
	return best;
}

// Contacts that are kept, while others are compared with them.
struct Kept
{
	int slot;    // the lowest of those that are one contact
	int source;  // of the nearest of them
	dvec3 d, n;
	dvec3 weights;
	ivec3 corners;
};

bool is_same_contact(Kept kept, Kept a, int feature, double reach)
{
	precise dvec3 way = kept.d - a.d;
	precise double apart = product3(way, way), rise = product3(way, kept.n), cosine_of = product3(kept.n, a.n);
	precise double far = FLAT_APART * FLAT_APART * reach * reach;
	if (cosine_of > FLAT_COSINE && apart <= far && meet(kept.corners, a.corners))
	{
		return true;
	}
	precise double rise2 = rise * rise, limit = FLAT_SLOPE * FLAT_SLOPE * apart;
	return feature != FACE && rise2 <= limit;
}

dvec3 velocity_of_hit(Call call, Kept kept)
{
	int c = call.c;
	precise dvec3 velocity = dvec3(0.0lf);
	if (meshes[c].track >= 0)
	{
		precise dvec3 own = call.p - kept.d;
		velocity = cross3(dvec3(poses[c].spin[0], poses[c].spin[1], poses[c].spin[2]),
		                  turn_vector(pose_orientation(c), own)) +
		           dvec3(poses[c].velocity[0], poses[c].velocity[1], poses[c].velocity[2]);
	}
	if (poses[c].is_moving != 0)
	{
		velocity = dvec3(control.zero);
		for (int i = 0; i < 3; ++i)
		{
			precise dvec3 way = mesh_vertex(poses[c].next + 3 * kept.corners[i]) -
			                    mesh_vertex(poses[c].here + 3 * kept.corners[i]);
			velocity = velocity + kept.weights[i] * way / meshes[c].frame_interval;
		}
	}
	return velocity;
}

// Where a sphere at p touches collider c: places nearer than reach, or behind the surface by less. The triangles are
// nears[first .. first + count), whose sides are read and written; near_loads of them are used up.
int collider_touch(int c, dvec3 p, double reach, int first, int count, out Hit hits[SAND_HIT_LIMIT])
{
	Call call = Call(c, first, count, carry(c, p), reach);
	Kept kept[SAND_HIT_LIMIT];
	int kept_count = 0;
	if (find_candidates(call) == 0)
	{
		// Sides are settled all the same.
		settle_sides(call, -1);
		return 0;
	}
	judge(call);
	for (int slot = 0; slot < count; ++slot)
	{
		if (candidate_square(call, slot) >= 0.0lf && is_false(call, slot))
		{
			near_loads[6 * (first + slot) + 2] = double(candidate_flags(call, slot) | FALSE_ONE);
		}
	}
	double last = -1.0lf;
	for (int slot = next_candidate(call, last, -1); slot >= 0; slot = next_candidate(call, last, slot))
	{
		Kept a;
		Foot foot;
		look(call, slot, a.corners, foot);
		precise double distance = candidate_distance(call, slot);
		last = abs(distance);
		a.slot = slot;
		a.source = slot;
		a.d = foot.d;
		a.weights = foot.weights;
		precise dvec3 n;
		if (foot.feature == FACE || is_on_feature(call, foot.square))
		{
			n = double(slot_side(call, slot)) * unit_normal(foot);
		}
		else
		{
			n = foot.d / distance;
		}
		a.n = n;
		int same = 0;
		while (same < kept_count && !is_same_contact(kept[same], a, foot.feature, reach))
		{
			++same;
		}
		if (same < kept_count)
		{
			kept[same].slot = slot < kept[same].slot ? slot : kept[same].slot;
		}
		else if (kept_count < SAND_HIT_LIMIT)
		{
			kept[kept_count] = a;
			++kept_count;
		}
	}
	int last_slot = -1;
	for (int i = 0; i < kept_count; ++i)
	{
		int lowest = -1;
		for (int k = 0; k < kept_count; ++k)
		{
			if (kept[k].slot > last_slot && (lowest < 0 || kept[k].slot < kept[lowest].slot))
			{
				lowest = k;
			}
		}
		last_slot = kept[lowest].slot;
		hits[i].slot = last_slot;
		hits[i].distance = candidate_distance(call, kept[lowest].source);
		hits[i].normal = kept[lowest].n;
		if (meshes[c].track >= 0)
		{
			hits[i].normal = turn_vector(pose_orientation(c), kept[lowest].n);
		}
		hits[i].velocity = velocity_of_hit(call, kept[lowest]);
	}
	return kept_count;
}
#endif
#endif
