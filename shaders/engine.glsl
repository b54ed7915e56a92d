// engine: what the passes of the GL engine share: the buffers and the arithmetic of csrc/kernel.c, same bits.
// A pass says before it includes this file which buffers it uses, by USE_X; llvmpipe takes sixteen.
//
// Every result is precise: operations stay in the order written, nothing is fused. control.zero is a zero that no
// compiler can see: adding a literal one is folded away, and with it the sign of a zero.
#define double_p precise double
#define dvec3_p precise dvec3
#define dvec4_p precise dvec4

layout(std430, binding = SAND_BIND_CONTROL) buffer ControlBlock
{
	SandControl control;
};
// A copy, made first thing in main: a processor then reads each number once for all invocations of a group, which it cannot
// once some of them are done.
SandControl now;

// READ_X: the same buffers as texels, which are read faster where every invocation reads another place.
#ifdef READ_GRAINS
layout(binding = SAND_BIND_GRAINS) uniform usamplerBuffer grain_texels; // eight per grain
#endif
#ifdef READ_TRAITS
layout(binding = SAND_BIND_TRAITS) uniform usamplerBuffer trait_texels; // two per grain
#endif
#ifdef READ_SPHERES
layout(binding = SAND_BIND_SPHERES) uniform usamplerBuffer sphere_texels; // four per sphere
#endif
#ifdef READ_SHAPES
layout(binding = SAND_BIND_SHAPES) uniform usamplerBuffer shape_texels;   // three per shape
layout(binding = SAND_BIND_OFFSETS) uniform usamplerBuffer offset_texels; // x y z, radius
#endif
#ifdef READ_PAIRS
layout(binding = SAND_BIND_PAIRS) uniform usamplerBuffer pair_texels;
#endif
#ifdef READ_STRETCHES
layout(binding = SAND_BIND_STRETCHES) uniform usamplerBuffer stretch_texels;
#endif
#ifdef READ_FORCES
layout(binding = SAND_BIND_FORCES) uniform usamplerBuffer force_texels;
#endif
#ifdef READ_SUMS
layout(binding = SAND_BIND_SUMS) uniform usamplerBuffer sum_texels; // two per sphere
#endif
#ifdef READ_SPEEDS
layout(binding = SAND_BIND_SPEEDS) uniform usamplerBuffer speed_texels; // one of two words per grain
#endif
#ifdef READ_ADDENDS
layout(binding = SAND_BIND_ENTRY_FIRSTS) uniform usamplerBuffer entry_first_texels;
layout(binding = SAND_BIND_ADDENDS) uniform usamplerBuffer addend_texels;
#endif
#ifdef READ_CELLS
layout(binding = SAND_BIND_STARTS) uniform usamplerBuffer start_texels;
layout(binding = SAND_BIND_ENTRIES) uniform usamplerBuffer entry_texels;
#endif

dvec2 doubles_of(uvec4 texel)
{
	return dvec2(packDouble2x32(texel.xy), packDouble2x32(texel.zw));
}

#ifdef NO_ROLLING
const int FORCE_ROWS = 2;
#else
const int FORCE_ROWS = 3;
#endif
#ifdef WRITE_FORCES
layout(std430, binding = SAND_BIND_FORCES) writeonly buffer ForceBlock
{
	vec4 force_rows[];
};

void write_force(int record, bool is_touching, vec3 force, float lever_a, vec3 moment, float lever_b, vec3 couple)
{
	force_rows[FORCE_ROWS * record] = is_touching ? vec4(force, lever_a) : vec4(0.0);
	force_rows[FORCE_ROWS * record + 1] = is_touching ? vec4(moment, lever_b) : vec4(0.0);
#ifndef NO_ROLLING
	force_rows[FORCE_ROWS * record + 2] = is_touching ? vec4(couple, 0.0) : vec4(0.0);
#endif
}
#endif

#ifdef USE_GRAINS
layout(std430, binding = SAND_BIND_GRAINS) buffer GrainBlock
{
	SandGrain grains[];
};
#endif
#ifdef USE_TRAITS
layout(std430, binding = SAND_BIND_TRAITS) buffer TraitBlock
{
	SandTraits traits[];
};
#endif
#ifdef USE_SPHERES
layout(std430, binding = SAND_BIND_SPHERES) buffer SphereBlock
{
	SandSphere spheres[];
};
#endif
#ifdef USE_SUMS
layout(std430, binding = SAND_BIND_SUMS) buffer SumBlock
{
	SandSum sums[];
};
#endif
#ifdef USE_PAIRS
layout(std430, binding = SAND_BIND_PAIRS) buffer PairBlock
{
	SandGlPair pairs[];
};
#endif
#ifdef USE_STRETCHES
layout(std430, binding = SAND_BIND_STRETCHES) buffer StretchBlock
{
	vec4 stretches[]; // per pair, m
};
#endif
#ifdef USE_FIRSTS
layout(std430, binding = SAND_BIND_FIRSTS) buffer FirstBlock
{
	int firsts[]; // per sphere, + 1: its first pair as the lower one
};
#endif
#ifdef USE_BACKS
layout(std430, binding = SAND_BIND_BACK_FIRSTS) buffer BackFirstBlock
{
	int back_firsts[]; // per sphere, + 1: the first of its pairs as the higher one
};
layout(std430, binding = SAND_BIND_BACKS) buffer BackBlock
{
	int backs[]; // numbers of pairs, ascending for each sphere
};
#endif
#ifdef USE_SHAPES
layout(std430, binding = SAND_BIND_SHAPES) buffer ShapeBlock
{
	SandGlShape shapes[];
};
layout(std430, binding = SAND_BIND_OFFSETS) buffer OffsetBlock
{
	float offsets[]; // x y z, radius of every sphere of every shape, m
};
#endif
#ifdef USE_LAWS
layout(std430, binding = SAND_BIND_LAWS) readonly buffer LawBlock
{
	SandLaw laws[];
};
layout(binding = SAND_BIND_LAWS) uniform usamplerBuffer law_texels; // seven of two words per law
SandLaw the_law; // of a scene that has one, read first thing in main

SandLaw law_of_number(int number)
{
#ifdef ONE_LAW
	return the_law;
#else
	SandLaw law;
	uvec4 kinds = texelFetch(law_texels, 7 * number);
	vec4 springs = uintBitsToFloat(texelFetch(law_texels, 7 * number + 1));
	vec4 shears = uintBitsToFloat(texelFetch(law_texels, 7 * number + 2));
	vec4 frictions = uintBitsToFloat(texelFetch(law_texels, 7 * number + 3));
	vec4 couples = uintBitsToFloat(texelFetch(law_texels, 7 * number + 4));
	vec4 bridges = uintBitsToFloat(texelFetch(law_texels, 7 * number + 5));
	law.normal = int(kinds.x);
	law.shear = int(kinds.y);
	law.spring = springs.x;
	law.damping = springs.y;
	law.shear_damping = shears.x;
	law.shear_spring = shears.y;
	law.friction = frictions.x;
	law.rolling = frictions.y;
	law.rolling_damping = couples.x;
	law.cohesion = couples.y;
	law.cohesion_range = bridges.x;
	return law;
#endif
}
#endif
#ifdef USE_LAW_OF
layout(std430, binding = SAND_BIND_LAW_OF) buffer LawOfBlock
{
	int law_of[]; // material_count squared
};
#endif
#ifdef USE_PARTIALS
layout(std430, binding = SAND_BIND_PARTIALS) buffer PartialBlock
{
	double partials[]; // per group of the pass that wrote them
};
#endif
#ifdef USE_FIELDS
layout(std430, binding = SAND_BIND_FIELDS) buffer FieldBlock
{
	float fields[]; // regions of nine numbers (min, max, acceleration), then outflows of six (min, max)
};
#endif
#ifdef USE_LEVELS
layout(std430, binding = SAND_BIND_LEVELS) buffer LevelBlock
{
	SandGlLevel levels[];
};
#endif
#ifdef USE_STARTS
layout(std430, binding = SAND_BIND_STARTS) buffer StartBlock
{
	uint starts[]; // per bucket of every level, + 1: its first entry
};
#endif
#ifdef USE_ENTRIES
layout(std430, binding = SAND_BIND_ENTRIES) buffer EntryBlock
{
	int entries[]; // spheres in order of bucket
};
#endif
#ifdef USE_BUCKETS
layout(std430, binding = SAND_BIND_BUCKETS) buffer BucketBlock
{
	uint buckets[]; // per sphere; SAND_NO_BUCKET when it is absent
};
#endif
#ifdef USE_SCAN
layout(std430, binding = SAND_BIND_SCAN) buffer ScanBlock
{
	uint scan_values[];
};
layout(std430, binding = SAND_BIND_SCAN_SUMS) buffer ScanSumBlock
{
	uint scan_sums[]; // per group of the level below
};
#endif
#ifdef USE_SPRINGS
layout(std430, binding = SAND_BIND_SPRING_FIRSTS) buffer SpringFirstBlock
{
	int spring_firsts[]; // per lasting sphere id, + 1
};
layout(std430, binding = SAND_BIND_SPRINGS) buffer SpringBlock
{
	SandGlSpring springs[];
};
#endif
#ifdef USE_BASES
layout(std430, binding = SAND_BIND_BASES) buffer BaseBlock
{
	int bases[]; // per grain id: lasting id of its first sphere; then per sphere of lasting id: not 0 = at rest
};
#endif
#ifdef USE_TOUCHES
layout(std430, binding = SAND_BIND_TOUCH_FIRSTS) buffer TouchFirstBlock
{
	int touch_firsts[]; // per sphere, + 1
};
layout(std430, binding = SAND_BIND_TOUCHES) buffer TouchBlock
{
	SandGlTouch touches[];
};
#endif
#ifdef USE_NEARS
layout(std430, binding = SAND_BIND_NEAR_FIRSTS) buffer NearFirstBlock
{
	int near_firsts[]; // per sphere, + 1
};
layout(std430, binding = SAND_BIND_NEARS) buffer NearBlock
{
	SandGlNear nears[];
};
#endif
#ifdef USE_SUPPORTS
layout(std430, binding = SAND_BIND_SUPPORTS) buffer SupportBlock
{
	int supports[]; // per grain
};
#endif
#ifdef USE_WATCHES
layout(std430, binding = SAND_BIND_WATCHES) buffer WatchBlock
{
	int watches[]; // sleeping sphere, awake sphere
};
#endif
#ifdef USE_BODIES
layout(std430, binding = SAND_BIND_TARGETS) buffer TargetBlock
{
	SandGrain targets[]; // per body: where a driven one is after the next move
};
layout(std430, binding = SAND_BIND_IMPULSES) buffer ImpulseBlock
{
	double impulses[]; // six per body: N s, N m s
};
#endif

bool is_still(int flags)
{
	return (flags & SAND_GRAIN_STILL) != 0;
}

#ifdef USE_BASES
// Lasting id of a sphere: grains by id, then walls.
int lasting_id(int s)
{
	if (s >= control.sphere_count)
	{
		return s;
	}
	int grain = spheres[s].grain;
	return bases[traits[grain].id] + s - grains[grain].first_sphere;
}

bool was_at_rest(int lasting)
{
	return bases[control.grain_count + lasting] != 0;
}

void set_at_rest(int lasting, bool is_at_rest)
{
	bases[control.grain_count + lasting] = is_at_rest ? 1 : 0;
}
#endif

// ---- geometry ------------------------------------------------------------------------------------------------------

// Fixed-point places; NaN becomes the upper bound. Adding 1.5 * 2^52 rounds to the nearest, ties to even.
int to_fixed(double steps)
{
	double_p low = -1073741823.0lf, high = 1073741823.0lf, magic = 6755399441055744.0lf;
	double_p cut = steps < high ? steps : high;
	cut = cut > low ? cut : low;
	double_p moved = cut + magic;
	double_p whole = moved - magic;
	return int(whole);
}

// The products of three components in the order of the processor's vector instructions.
double dot_d(dvec3 a, dvec3 b)
{
	double_p x = a.x * b.x, y = a.y * b.y, z = a.z * b.z;
	double_p xz = x + z, yw = y + now.zero;
	double_p sum = xz + yw;
	return sum;
}

dvec3 cross_d(dvec3 a, dvec3 b)
{
	dvec3_p c = dvec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
	return c;
}

// Columns of the rotation matrix of q (w, x, y, z): where the principal axes point.
void columns_of(dvec4 q, out dvec3 c0, out dvec3 c1, out dvec3 c2)
{
	dvec4_p twice = q + q;
	double_p x = twice.y, y = twice.z, z = twice.w, zero = now.zero, one = 1.0lf + zero;
	dvec3_p a = dvec3(one, zero, zero) + y * dvec3(-q.z, q.y, -q.x);
	dvec3_p b = dvec3(zero, one, zero) + x * dvec3(q.z, -q.y, q.x);
	dvec3_p c = dvec3(zero, zero, one) + x * dvec3(q.w, -q.x, -q.y);
	dvec3_p a2 = a + z * dvec3(-q.w, q.x, q.y);
	dvec3_p b2 = b + z * dvec3(-q.x, -q.w, q.z);
	dvec3_p c2_ = c + y * dvec3(q.x, q.w, -q.z);
	c0 = a2;
	c1 = b2;
	c2 = c2_;
}

// sin(a) / a and cos(a) of the square of a.
double sine_ratio(double square)
{
	double_p r = 1.0lf - square * (1.0lf / 42.0lf);
	r = 1.0lf - square * (1.0lf / 20.0lf) * r;
	r = 1.0lf - square * (1.0lf / 6.0lf) * r;
	return r;
}

double cosine(double square)
{
	double_p r = 1.0lf - square * (1.0lf / 30.0lf);
	r = 1.0lf - square * (1.0lf / 12.0lf) * r;
	r = 1.0lf - square * 0.5lf * r;
	return r;
}

dvec4 turned(dvec4 q, dvec3 h, double c)
{
	double_p w = (q.x * c - q.y * h.x) - (q.z * h.y + q.w * h.z);
	double_p x = (q.y * c + q.x * h.x) + (q.w * h.y - q.z * h.z);
	double_p y = (q.z * c - q.w * h.x) + (q.x * h.y + q.y * h.z);
	double_p z = (q.w * c + q.z * h.x) + (q.x * h.z - q.y * h.y);
	return dvec4(w, x, y, z);
}

// turn() of csrc/kernel.c: a quarter radian at most.
dvec4 turn(dvec4 q, dvec3 spin, double dt)
{
	double_p half_dt = 0.5lf * dt;
	dvec3_p h = spin * half_dt;
	double_p square = dot_d(h, h);
	double_p c = cosine(square), s = sine_ratio(square);
	h = h * s;
	dvec4_p r = turned(q, h, c);
	dvec4_p p = r * r;
	double_p xz = p.x + p.z, yw = p.y + p.w;
	double_p square_length = xz + yw;
	double_p correction = 1.5lf - 0.5lf * square_length;
	dvec4_p result = r * correction;
	return result;
}

dvec4 turn_safely(dvec4 q, dvec3 spin, double dt)
{
	double_p square = dot_d(spin, spin) * dt * dt;
	if (square < 0.25lf)
	{
		return turn(q, spin, dt);
	}
	int parts = square < 1e12lf ? int(2.0lf * sqrt(square)) + 1 : 1;
	double_p part = dt / double(parts);
	for (int i = 0; i < parts; ++i)
	{
		q = turn(q, spin, part);
	}
	return q;
}

// One lane of turn_four().
dvec4 turn_step(dvec4 q, dvec3 spin, double dt)
{
	double_p half_dt = 0.5lf * dt;
	dvec3_p h = spin * half_dt;
	double_p square = h.x * h.x + h.y * h.y + h.z * h.z;
	if (!(square < 0.0625lf))
	{
		return turn_safely(q, spin, dt);
	}
	double_p s = sine_ratio(square), c = cosine(square);
	h = h * s;
	dvec4_p t = turned(q, h, c);
	double_p correction = 1.5lf - 0.5lf * ((t.x * t.x + t.y * t.y) + (t.z * t.z + t.w * t.w));
	dvec4_p result = t * correction;
	return result;
}

// Angular velocity, world axes: R I^-1 R^T L. inertia of the shape, m^2.
dvec3 spin_from(double inverse_inertia, double inverse_mass, double size, dvec3 inertia, dvec4 q, dvec3 momentum)
{
	dvec3_p round_spin = momentum * inverse_inertia;
#ifdef NO_ASYMMETRIC
	return round_spin;
#else
	double_p scale = size * size / inverse_mass;
	dvec3 c0, c1, c2;
	columns_of(q, c0, c1, c2);
	double_p i0 = inertia.x * scale, i1 = inertia.y * scale, i2 = inertia.z * scale;
	double_p s0 = dot_d(c0, momentum) / i0, s1 = dot_d(c1, momentum) / i1, s2 = dot_d(c2, momentum) / i2;
	dvec3_p spin = dvec3(now.zero) + c0 * s0;
	spin = spin + c1 * s1;
	spin = spin + c2 * s2;
	return inverse_inertia > 0.0lf ? round_spin : spin;
#endif
}

// What the spheres of a grain have in common.
struct GrainPose
{
	dvec3 place;    // units, of the centre
	dvec3 velocity; // m/s
	vec3 spin;      // units/s per unit of lever
	dvec3 a, b, c;    // units per metre of offset
	dvec3 ma, mb, mc; // how their ends move
};

GrainPose pose_of(dvec3 position, dvec3 velocity, dvec3 spin, dvec4 q, double scale)
{
	GrainPose pose;
	dvec3_p origin = dvec3(now.origin[0], now.origin[1], now.origin[2]);
	dvec3_p place = (position - origin) * now.inverse_unit, spin_units = spin * now.unit;
	pose.place = place;
	pose.velocity = velocity;
	pose.spin = vec3(float(spin_units.x), float(spin_units.y), float(spin_units.z));
#ifndef NO_CLUSTERS
	dvec3 c0, c1, c2;
	columns_of(q, c0, c1, c2);
	dvec3_p a = c0 * scale, b = c1 * scale, c = c2 * scale;
	pose.ma = cross_d(spin, a);
	pose.mb = cross_d(spin, b);
	pose.mc = cross_d(spin, c);
	a = a * now.inverse_unit;
	b = b * now.inverse_unit;
	c = c * now.inverse_unit;
	pose.a = a;
	pose.b = b;
	pose.c = c;
#endif
	return pose;
}

// Where the sphere at that offset is, and its velocity.
ivec3 placed(GrainPose pose, bool is_cluster, vec3 offset, out vec3 velocity_out)
{
	dvec3_p position = pose.place, velocity = pose.velocity;
#ifndef NO_CLUSTERS
	dvec3 o = dvec3(double(offset.x), double(offset.y), double(offset.z));
	dvec3_p p = position + pose.a * o.x, v = velocity + pose.ma * o.x;
	p = p + pose.b * o.y;
	p = p + pose.c * o.z;
	v = v + pose.mb * o.y;
	v = v + pose.mc * o.z;
	position = is_cluster ? p : position;
	velocity = is_cluster ? v : velocity;
#endif
	velocity_out = vec3(float(velocity.x), float(velocity.y), float(velocity.z));
	return ivec3(to_fixed(position.x), to_fixed(position.y), to_fixed(position.z));
}

// Whether a sphere is farther from where it was listed than the margin of its grain allows.
bool is_far(ivec3 x, ivec3 x_listed, int flags)
{
	precise vec3 d = vec3(x - x_listed);
	precise float square = d.x * d.x + d.y * d.y + d.z * d.z;
	precise float margin = (flags & SAND_GRAIN_FAST) != 0 ? now.margin_fast : now.margin_slow;
	precise float limit = margin * margin;
	return square > limit;
}

#ifdef USE_GRAINS
dvec3 position_of(int i)
{
	return dvec3(grains[i].position[0], grains[i].position[1], grains[i].position[2]);
}

dvec4 orientation_of(int i)
{
	return dvec4(grains[i].orientation[0], grains[i].orientation[1], grains[i].orientation[2], grains[i].orientation[3]);
}

dvec3 velocity_of(int i)
{
	return dvec3(grains[i].velocity[0], grains[i].velocity[1], grains[i].velocity[2]);
}

dvec3 momentum_of(int i)
{
	return dvec3(grains[i].momentum[0], grains[i].momentum[1], grains[i].momentum[2]);
}

void set_velocity(int i, dvec3 v)
{
	grains[i].velocity[0] = v.x;
	grains[i].velocity[1] = v.y;
	grains[i].velocity[2] = v.z;
}

void set_momentum(int i, dvec3 v)
{
	grains[i].momentum[0] = v.x;
	grains[i].momentum[1] = v.y;
	grains[i].momentum[2] = v.z;
}

void set_position(int i, dvec3 v)
{
	grains[i].position[0] = v.x;
	grains[i].position[1] = v.y;
	grains[i].position[2] = v.z;
}

void set_orientation(int i, dvec4 q)
{
	grains[i].orientation[0] = q.x;
	grains[i].orientation[1] = q.y;
	grains[i].orientation[2] = q.z;
	grains[i].orientation[3] = q.w;
}

#if defined(USE_TRAITS) && defined(USE_SHAPES)
dvec3 spin_of(int i, dvec4 q, dvec3 momentum)
{
	int shape = traits[i].shape;
	return spin_from(grains[i].inverse_inertia, grains[i].inverse_mass, double(traits[i].scale),
	                 dvec3(shapes[shape].inertia[0], shapes[shape].inertia[1], shapes[shape].inertia[2]), q, momentum);
}

#ifdef USE_SPHERES
// Sphere k of grain i as the grain is; false when it is farther from where it was listed than the margin allows.
bool place_sphere(int i, int k, bool is_listing)
{
	int shape = traits[i].shape, s = grains[i].first_sphere + k;
	dvec4 q = orientation_of(i);
	bool is_cluster = shapes[shape].sphere_count > 1;
	GrainPose pose = pose_of(position_of(i), velocity_of(i), spin_of(i, q, momentum_of(i)), q, double(traits[i].scale));
	double_p own = (grains[i].flags & SAND_GRAIN_DRIVEN) != 0 ? 0.0lf : grains[i].inverse_mass / shapes[shape].share;
	int at = 4 * (shapes[shape].first_offset + k);
	vec3 velocity;
	ivec3 x = placed(pose, is_cluster, vec3(offsets[at], offsets[at + 1], offsets[at + 2]), velocity);
	for (int axis = 0; axis < 3; ++axis)
	{
		spheres[s].x[axis] = x[axis];
		spheres[s].velocity[axis] = velocity[axis];
		spheres[s].spin[axis] = pose.spin[axis];
	}
	spheres[s].radius_again = spheres[s].radius;
	spheres[s].inverse_mass = float(own);
	if (is_listing)
	{
		spheres[s].x_listed[0] = x.x;
		spheres[s].x_listed[1] = x.y;
		spheres[s].x_listed[2] = x.z;
		return true;
	}
	return !is_far(x, ivec3(spheres[s].x_listed[0], spheres[s].x_listed[1], spheres[s].x_listed[2]), grains[i].flags);
}
#endif
#endif
#endif
