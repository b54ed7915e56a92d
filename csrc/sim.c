// sim: state and stepping of rigid sphere clusters by the discrete element method.
// Comes in: SandScene. Goes out: grain arrays.
//
// One step (leapfrog: kick, drift, kick; forces use the half-step velocities, as engineering codes do):
//   drift   half kick, move and turn every grain, place its spheres
//   forces  contacts of every sphere, sum per grain, second half kick
// Grains are kept in space-filling order and cut into chunks of fixed size. A chunk's task computes every force on its
// own grains: pairs inside the chunk once, pairs across a border once on each side. So no two tasks write the same
// memory, and the order of every sum depends on the state alone, never on the threads.
//
// Sphere positions are 32-bit integers, in units of the domain's extent / 2^31: differences are exact, so the force on
// a pair does not depend on where in the domain it lies.
#include "sim.h"

#include "pool.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define CHUNK_SPHERES 2048  // target spheres per chunk: large enough that few pairs cross a border
#define STEPS_PER_CONTACT 16 // of the contact time; leapfrog is stable to about 1/5 of it in a dense bed
#define SKIN_SHARE 0.35f    // of the smallest radius: reach of the neighbour list beyond touching
#define WALL_MASS 1e30f     // kg: m1 m2 / (m1 + m2) becomes the grain's mass

// 64 bytes, one cache line: all that a contact needs to know of a sphere.
typedef struct Sphere
{
	int32_t x[3]; // fixed-point position
	float radius; // m
	float u[3];   // m/s, velocity of the sphere's centre
	int32_t grain; // sorted index, -1 for a wall
	float w[3];   // rad/s
	float mass;   // kg, of the whole grain
	int32_t x_listed[3]; // position when the neighbour list was made
	int32_t pad;
} Sphere;
_Static_assert(sizeof(Sphere) == 64, "a sphere is one cache line");

typedef struct Grain
{
	double position[3];
	double orientation[4]; // w x y z, principal axes to world
	double velocity[3];
	double momentum[3]; // angular, world axes: constant in free flight whatever the shape
	double force[3], torque[3];
	int32_t id;
	int32_t shape;
	int32_t first_sphere; // in the sphere array
	int32_t is_lost;
} Grain;

typedef struct SphereSum
{
	float force[3];
	float torque[3]; // about the sphere's centre
} SphereSum;

// Entry of the cell table: a copy of the position beside the index, so that the search streams.
typedef struct CellEntry
{
	int32_t x[3];
	int32_t sphere;
} CellEntry;

typedef struct Chunk
{
	int32_t first_grain, grain_count;
	int32_t first_sphere, sphere_count;
	int32_t *neighbours; // per sphere of the chunk: pairs inside (both sides summed), then pairs across (own side only)
	int32_t neighbour_capacity;
	int32_t contact_count; // touching pairs, borders counted half
	int32_t needs_list;    // a sphere moved half the skin
	int32_t bad_grain;     // id of the first non-finite or too fast grain, or INT32_MAX
	double bad_speed;
	int32_t is_short; // neighbour memory ran out
} Chunk;

struct SandSim
{
	const SandScene *scene;
	SandPool *pool;
	double time;
	double step_limit, step; // s: longest allowed, and current
	int64_t step_count;
	bool is_failed;

	Grain *grains, *grains_spare;
	int grain_count;
	Sphere *spheres;
	SphereSum *sums;
	int sphere_count, wall_count; // walls follow the grains' spheres
	int32_t *list_start;          // first neighbour of each sphere, in its chunk's array
	int32_t *list_inner;          // pairs inside the chunk
	int32_t *list_outer;          // pairs across

	Chunk *chunks;
	int chunk_count;

	double unit;      // m per fixed-point step
	double origin[3]; // m, of fixed-point zero
	float skin;       // m
	float speed_limit; // m/s

	uint64_t *keys, *keys_spare;

	double cell_inverse; // fixed-point steps to cells
	CellEntry *cells;
	int32_t *cell_start; // table size + 3 entries (wrapped rows)
	uint32_t *sphere_bucket;
	uint32_t table_mask;
	uint32_t row_y, row_z;
};

static void quaternion_multiply(const double a[4], const double b[4], double out[4])
{
	double r[4] = {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
	               a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
	               a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
	               a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
	memcpy(out, r, sizeof(r));
}

static void quaternion_normalise(double q[4])
{
	double s = 1 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
	for (int k = 0; k < 4; ++k)
	{
		q[k] *= s;
	}
}

static void rotation_of(const double q[4], double m[3][3])
{
	double w = q[0], x = q[1], y = q[2], z = q[3];
	m[0][0] = 1 - 2 * (y * y + z * z);
	m[0][1] = 2 * (x * y - w * z);
	m[0][2] = 2 * (x * z + w * y);
	m[1][0] = 2 * (x * y + w * z);
	m[1][1] = 1 - 2 * (x * x + z * z);
	m[1][2] = 2 * (y * z - w * x);
	m[2][0] = 2 * (x * z - w * y);
	m[2][1] = 2 * (y * z + w * x);
	m[2][2] = 1 - 2 * (x * x + y * y);
}

// Angular velocity, world axes: R I^-1 R^T L.
static void spin_of(const SandShape *shape, const double q[4], const double momentum[3], double spin[3])
{
	double m[3][3];
	rotation_of(q, m);
	double body[3];
	for (int k = 0; k < 3; ++k)
	{
		body[k] = (m[0][k] * momentum[0] + m[1][k] * momentum[1] + m[2][k] * momentum[2]) / shape->inertia[k];
	}
	for (int k = 0; k < 3; ++k)
	{
		spin[k] = m[k][0] * body[0] + m[k][1] * body[1] + m[k][2] * body[2];
	}
}

static bool is_isotropic(const SandShape *shape)
{
	double largest = fmax(shape->inertia[0], fmax(shape->inertia[1], shape->inertia[2]));
	double smallest = fmin(shape->inertia[0], fmin(shape->inertia[1], shape->inertia[2]));
	return largest - smallest <= 1e-6 * largest;
}

// q turned by spin for dt: exact for a constant spin.
static void turn(const double q[4], const double spin[3], double dt, double out[4])
{
	double angle = 0.5 * dt * sqrt(spin[0] * spin[0] + spin[1] * spin[1] + spin[2] * spin[2]);
	double s = 0.5 * dt * (angle > 1e-8 ? sin(angle) / angle : 1.0);
	double d[4] = {cos(angle), s * spin[0], s * spin[1], s * spin[2]};
	quaternion_multiply(d, q, out);
	quaternion_normalise(out);
}

static int32_t to_fixed(const SandSim *sim, double value, int axis)
{
	double steps = (value - sim->origin[axis]) / sim->unit;
	// A lost or failing grain may be anywhere; it keeps a legal place until it is reported.
	steps = steps > 1073741823.0 ? 1073741823.0 : steps > -1073741823.0 ? steps : -1073741823.0;
	return (int32_t)lrint(steps);
}

static void place_spheres(SandSim *sim, const Grain *grain, const double spin[3])
{
	const SandShape *shape = &sim->scene->shapes[grain->shape];
	double m[3][3];
	rotation_of(grain->orientation, m);
	for (int i = 0; i < shape->sphere_count; ++i)
	{
		Sphere *sphere = &sim->spheres[grain->first_sphere + i];
		const float *offset = shape->offsets + 3 * i;
		double o[3];
		for (int k = 0; k < 3; ++k)
		{
			o[k] = m[k][0] * (double)offset[0] + m[k][1] * (double)offset[1] + m[k][2] * (double)offset[2];
			sphere->x[k] = to_fixed(sim, grain->position[k] + o[k], k);
			sphere->w[k] = (float)spin[k];
		}
		sphere->u[0] = (float)(grain->velocity[0] + spin[1] * o[2] - spin[2] * o[1]);
		sphere->u[1] = (float)(grain->velocity[1] + spin[2] * o[0] - spin[0] * o[2]);
		sphere->u[2] = (float)(grain->velocity[2] + spin[0] * o[1] - spin[1] * o[0]);
	}
}

static void half_kick(const SandSim *sim, Grain *grain, double dt)
{
	const SandShape *shape = &sim->scene->shapes[grain->shape];
	for (int k = 0; k < 3; ++k)
	{
		grain->velocity[k] += 0.5 * dt * (grain->force[k] / shape->mass + sim->scene->gravity[k]);
		grain->momentum[k] += 0.5 * dt * grain->torque[k];
	}
}

static void drift_grain(SandSim *sim, Grain *grain, double dt)
{
	const SandShape *shape = &sim->scene->shapes[grain->shape];
	double spin[3];
	half_kick(sim, grain, dt);
	for (int k = 0; k < 3; ++k)
	{
		grain->position[k] += dt * grain->velocity[k];
	}
	spin_of(shape, grain->orientation, grain->momentum, spin);
	if (!is_isotropic(shape))
	{
		// Midpoint rule: the spin of a free asymmetric body changes with its orientation.
		double middle[4];
		turn(grain->orientation, spin, 0.5 * dt, middle);
		spin_of(shape, middle, grain->momentum, spin);
	}
	turn(grain->orientation, spin, dt, grain->orientation);
	spin_of(shape, grain->orientation, grain->momentum, spin);
	place_spheres(sim, grain, spin);
}

static bool is_inside_domain(const SandSim *sim, const Grain *grain)
{
	bool is_inside = true;
	for (int k = 0; k < 3; ++k)
	{
		is_inside = is_inside && grain->position[k] > sim->scene->domain_min[k] &&
		            grain->position[k] < sim->scene->domain_max[k];
	}
	return is_inside;
}

static void freeze_lost_grain(SandSim *sim, Grain *grain)
{
	static const double rest[3] = {0, 0, 0};
	memset(grain->velocity, 0, sizeof(grain->velocity));
	memset(grain->momentum, 0, sizeof(grain->momentum));
	grain->is_lost = 1;
	place_spheres(sim, grain, rest);
}

static void drift_chunk(void *context, int chunk_index)
{
	SandSim *sim = context;
	Chunk *chunk = &sim->chunks[chunk_index];
	for (int i = 0; i < chunk->grain_count; ++i)
	{
		Grain *grain = &sim->grains[chunk->first_grain + i];
		if (grain->is_lost)
		{
			continue;
		}
		drift_grain(sim, grain, sim->step);
		double speed = sqrt(grain->velocity[0] * grain->velocity[0] + grain->velocity[1] * grain->velocity[1] +
		                    grain->velocity[2] * grain->velocity[2]);
		// Written so that a NaN fails it.
		if (!(speed < (double)sim->speed_limit) && grain->id < chunk->bad_grain)
		{
			chunk->bad_grain = grain->id;
			chunk->bad_speed = speed;
		}
		if (!is_inside_domain(sim, grain))
		{
			freeze_lost_grain(sim, grain);
		}
	}
	float limit = 0.5f * sim->skin / (float)sim->unit;
	int32_t needs_list = 0;
	for (int i = chunk->first_sphere; i < chunk->first_sphere + chunk->sphere_count; ++i)
	{
		const Sphere *s = &sim->spheres[i];
		float d[3];
		for (int k = 0; k < 3; ++k)
		{
			d[k] = (float)((int64_t)s->x[k] - s->x_listed[k]);
		}
		needs_list |= d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > limit * limit;
	}
	chunk->needs_list = needs_list;
}

typedef struct ContactLaw
{
	float spring, damping;  // per kg of effective mass: 1/s^2, 1/s (Bell 2005 eqs. 9, 10)
	float shear;            // per kg of effective mass: 1/s
	float friction;
	float unit;
} ContactLaw;

static ContactLaw contact_law(const SandSim *sim)
{
	const SandScene *scene = sim->scene;
	double log_e = log((double)scene->restitution), tc = scene->contact_time;
	ContactLaw law = {0};
	law.spring = (float)((log_e * log_e + 9.86960440108935862) / (tc * tc));
	law.damping = (float)(-2 * log_e / tc);
	// Strong enough to act as Coulomb friction at any visible slip, weak enough to be stable with ten contacts a grain.
	law.shear = (float)(2 / tc);
	law.friction = scene->friction;
	law.unit = (float)sim->unit;
	return law;
}

// Force of a contact on sphere a. n points from b to a, overlap > 0, v = velocity of a against b at the contact point.
// Normal: damped linear spring, never pulling (Bell 2005 eqs. 7-10). Shear: Coulomb-capped viscous (eq. 18).
static void contact_force(const ContactLaw *law, float mass, float overlap, const float n[3], const float v[3],
                          float force[3])
{
	float approach = v[0] * n[0] + v[1] * n[1] + v[2] * n[2];
	float normal = mass * (law->spring * overlap - law->damping * approach);
	normal = normal > 0 ? normal : 0;
	float t[3] = {v[0] - approach * n[0], v[1] - approach * n[1], v[2] - approach * n[2]};
	float slip = sqrtf(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
	float viscous = mass * law->shear;
	float cap = law->friction * normal;
	float scale = viscous * slip > cap ? cap / slip : viscous;
	for (int k = 0; k < 3; ++k)
	{
		force[k] = normal * n[k] - scale * t[k];
	}
}

// Contact of spheres a and b; true when they touch. Gives the force on a, and the moment n x F (the torque on either
// sphere's centre is -radius times it for a and -radius times it for b: both levers point to the contact).
static bool touch(const ContactLaw *law, const Sphere *a, const Sphere *b, float force[3], float moment[3])
{
	float d[3];
	for (int k = 0; k < 3; ++k)
	{
		d[k] = (float)(a->x[k] - b->x[k]) * law->unit;
	}
	float square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
	float reach = a->radius + b->radius;
	if (square >= reach * reach)
	{
		return false;
	}
	float distance = sqrtf(square);
	float inverse = distance > 0 ? 1 / distance : 0;
	float n[3] = {d[0] * inverse, d[1] * inverse, d[2] * inverse};
	float s[3]; // w x (-radius n), summed over both spheres
	for (int k = 0; k < 3; ++k)
	{
		s[k] = a->radius * a->w[k] + b->radius * b->w[k];
	}
	float v[3] = {a->u[0] - b->u[0] - (s[1] * n[2] - s[2] * n[1]), a->u[1] - b->u[1] - (s[2] * n[0] - s[0] * n[2]),
	              a->u[2] - b->u[2] - (s[0] * n[1] - s[1] * n[0])};
	float mass = a->mass * b->mass / (a->mass + b->mass);
	contact_force(law, mass, reach - distance, n, v, force);
	moment[0] = n[1] * force[2] - n[2] * force[1];
	moment[1] = n[2] * force[0] - n[0] * force[2];
	moment[2] = n[0] * force[1] - n[1] * force[0];
	return true;
}

static void add_contact(SphereSum *sum, float sign, float radius, const float force[3], const float moment[3])
{
	for (int k = 0; k < 3; ++k)
	{
		sum->force[k] += sign * force[k];
		sum->torque[k] -= radius * moment[k];
	}
}

static void add_planes(SandSim *sim, const ContactLaw *law, const Sphere *s, SphereSum *sum)
{
	for (int p = 0; p < sim->scene->plane_count; ++p)
	{
		const SandPlane *plane = &sim->scene->planes[p];
		double distance = 0;
		for (int k = 0; k < 3; ++k)
		{
			distance +=
			    ((double)s->x[k] * sim->unit + sim->origin[k] - (double)plane->point[k]) * (double)plane->normal[k];
		}
		float overlap = (float)((double)s->radius - distance);
		if (overlap <= 0)
		{
			continue;
		}
		const float *n = plane->normal;
		float s_w[3] = {s->radius * s->w[0], s->radius * s->w[1], s->radius * s->w[2]};
		float v[3] = {s->u[0] - (s_w[1] * n[2] - s_w[2] * n[1]), s->u[1] - (s_w[2] * n[0] - s_w[0] * n[2]),
		              s->u[2] - (s_w[0] * n[1] - s_w[1] * n[0])};
		float force[3];
		contact_force(law, s->mass, overlap, n, v, force);
		float moment[3] = {n[1] * force[2] - n[2] * force[1], n[2] * force[0] - n[0] * force[2],
		                   n[0] * force[1] - n[1] * force[0]};
		add_contact(sum, 1, s->radius, force, moment);
	}
}

static void gather_grain(SandSim *sim, Grain *grain)
{
	const SandShape *shape = &sim->scene->shapes[grain->shape];
	double force[3] = {0}, torque[3] = {0};
	double m[3][3];
	rotation_of(grain->orientation, m);
	for (int i = 0; i < shape->sphere_count; ++i)
	{
		const SphereSum *sum = &sim->sums[grain->first_sphere + i];
		const float *offset = shape->offsets + 3 * i;
		double o[3], f[3];
		for (int k = 0; k < 3; ++k)
		{
			o[k] = m[k][0] * (double)offset[0] + m[k][1] * (double)offset[1] + m[k][2] * (double)offset[2];
			f[k] = sum->force[k];
			force[k] += f[k];
		}
		torque[0] += (double)sum->torque[0] + o[1] * f[2] - o[2] * f[1];
		torque[1] += (double)sum->torque[1] + o[2] * f[0] - o[0] * f[2];
		torque[2] += (double)sum->torque[2] + o[0] * f[1] - o[1] * f[0];
	}
	memcpy(grain->force, force, sizeof(force));
	memcpy(grain->torque, torque, sizeof(torque));
}

static void force_chunk(SandSim *sim, Chunk *chunk)
{
	const ContactLaw law = contact_law(sim);
	int last = chunk->first_sphere + chunk->sphere_count;
	int contact_count = 0, border_count = 0;
	memset(sim->sums + chunk->first_sphere, 0, (size_t)chunk->sphere_count * sizeof(SphereSum));
	for (int i = chunk->first_sphere; i < last; ++i)
	{
		const Sphere *a = &sim->spheres[i];
		SphereSum *sum = &sim->sums[i];
		const int32_t *list = chunk->neighbours + sim->list_start[i];
		int inner = sim->list_inner[i], all = inner + sim->list_outer[i];
		float force[3], moment[3];
		for (int k = 0; k < inner; ++k)
		{
			const Sphere *b = &sim->spheres[list[k]];
			if (touch(&law, a, b, force, moment))
			{
				add_contact(sum, 1, a->radius, force, moment);
				add_contact(&sim->sums[list[k]], -1, b->radius, force, moment);
				++contact_count;
			}
		}
		for (int k = inner; k < all; ++k)
		{
			// The pair is computed on both sides of the border from the same side, so that the forces are equal to the bit.
			int32_t j = list[k];
			const Sphere *b = &sim->spheres[j];
			bool is_first = i < j;
			if (is_first ? touch(&law, a, b, force, moment) : touch(&law, b, a, force, moment))
			{
				add_contact(sum, is_first ? 1.0f : -1.0f, a->radius, force, moment);
				border_count += b->grain < 0 ? 2 : 1;
			}
		}
		if (sim->scene->plane_count > 0)
		{
			add_planes(sim, &law, a, sum);
		}
	}
	chunk->contact_count = 2 * contact_count + border_count;
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		gather_grain(sim, &sim->grains[i]);
	}
}

static void force_and_kick_chunk(void *context, int chunk_index)
{
	SandSim *sim = context;
	Chunk *chunk = &sim->chunks[chunk_index];
	force_chunk(sim, chunk);
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		if (!sim->grains[i].is_lost)
		{
			half_kick(sim, &sim->grains[i], sim->step);
		}
	}
}

static void force_only_chunk(void *context, int chunk_index)
{
	SandSim *sim = context;
	force_chunk(sim, &sim->chunks[chunk_index]);
}

// ---------------------------------------------------------------------------------------------- neighbour list

static uint64_t spread_bits(uint64_t v)
{
	v &= 0x1FFFFF;
	v = (v | v << 32) & UINT64_C(0x1F00000000FFFF);
	v = (v | v << 16) & UINT64_C(0x1F0000FF0000FF);
	v = (v | v << 8) & UINT64_C(0x100F00F00F00F00F);
	v = (v | v << 4) & UINT64_C(0x10C30C30C30C30C3);
	v = (v | v << 2) & UINT64_C(0x1249249249249249);
	return v;
}

// Grains into Morton order of their cell, ties by id: the order depends on the state alone. Radix sort of (key, grain).
static void sort_grains(SandSim *sim)
{
	int n = sim->grain_count;
	double cell = (4.0 * (double)sim->scene->radius_max) / sim->unit;
	// Stable passes below keep ids in order within a key, so start from id order.
	for (int i = 0; i < n; ++i)
	{
		sim->grains_spare[sim->grains[i].id] = sim->grains[i];
	}
	for (int i = 0; i < n; ++i)
	{
		uint64_t code = 0;
		for (int k = 0; k < 3; ++k)
		{
			double c = ((double)to_fixed(sim, sim->grains_spare[i].position[k], k) + 1073741824.0) / cell;
			code |= spread_bits((uint64_t)c) << k;
		}
		sim->keys[2 * i] = code;
		sim->keys[2 * i + 1] = (uint64_t)i;
	}
	uint64_t *from = sim->keys, *to = sim->keys_spare;
	for (int shift = 0; shift < 63; shift += 9)
	{
		int32_t count[513] = {0};
		for (int i = 0; i < n; ++i)
		{
			++count[((from[2 * i] >> shift) & 511) + 1];
		}
		if (count[((from[0] >> shift) & 511) + 1] == n)
		{
			continue;
		}
		for (int i = 0; i < 512; ++i)
		{
			count[i + 1] += count[i];
		}
		for (int i = 0; i < n; ++i)
		{
			int32_t place = count[(from[2 * i] >> shift) & 511]++;
			to[2 * place] = from[2 * i];
			to[2 * place + 1] = from[2 * i + 1];
		}
		uint64_t *swap = from;
		from = to;
		to = swap;
	}
	for (int i = 0; i < n; ++i)
	{
		sim->grains[i] = sim->grains_spare[from[2 * i + 1]];
	}
}

static void cut_chunks(SandSim *sim)
{
	int sphere = 0, chunk_index = -1;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		Grain *grain = &sim->grains[i];
		const SandShape *shape = &sim->scene->shapes[grain->shape];
		if (chunk_index < 0 || sim->chunks[chunk_index].sphere_count >= CHUNK_SPHERES)
		{
			Chunk *chunk = &sim->chunks[++chunk_index];
			chunk->first_grain = i;
			chunk->first_sphere = sphere;
			chunk->grain_count = chunk->sphere_count = 0;
			chunk->bad_grain = INT32_MAX;
		}
		grain->first_sphere = sphere;
		for (int k = 0; k < shape->sphere_count; ++k)
		{
			Sphere *s = &sim->spheres[sphere + k];
			s->radius = shape->radii[k];
			s->mass = (float)shape->mass;
			s->grain = i;
		}
		sphere += shape->sphere_count;
		sim->chunks[chunk_index].grain_count += 1;
		sim->chunks[chunk_index].sphere_count += shape->sphere_count;
	}
	sim->chunk_count = chunk_index + 1;
}

static void place_chunk(void *context, int chunk_index)
{
	SandSim *sim = context;
	Chunk *chunk = &sim->chunks[chunk_index];
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		Grain *grain = &sim->grains[i];
		double spin[3];
		spin_of(&sim->scene->shapes[grain->shape], grain->orientation, grain->momentum, spin);
		place_spheres(sim, grain, spin);
	}
	for (int i = chunk->first_sphere; i < chunk->first_sphere + chunk->sphere_count; ++i)
	{
		memcpy(sim->spheres[i].x_listed, sim->spheres[i].x, sizeof(sim->spheres[i].x));
	}
}

static uint32_t bucket_of(const SandSim *sim, const int32_t x[3])
{
	// Floor, so that cells are equally wide on both sides of zero.
	uint32_t c[3];
	for (int k = 0; k < 3; ++k)
	{
		c[k] = (uint32_t)(int32_t)floor((double)x[k] * sim->cell_inverse);
	}
	return (c[0] + c[1] * sim->row_y + c[2] * sim->row_z) & sim->table_mask;
}

// All spheres into the cell table: counting sort by bucket. Rows of cells along x are neighbouring buckets.
static void fill_cells(SandSim *sim)
{
	int total = sim->sphere_count + sim->wall_count;
	size_t table = (size_t)sim->table_mask + 1;
	memset(sim->cell_start, 0, (table + 4) * sizeof(int32_t));
	for (int i = 0; i < total; ++i)
	{
		sim->sphere_bucket[i] = bucket_of(sim, sim->spheres[i].x);
		++sim->cell_start[sim->sphere_bucket[i] + 1];
	}
	for (size_t b = 0; b < table; ++b)
	{
		sim->cell_start[b + 1] += sim->cell_start[b];
	}
	for (int i = 0; i < total; ++i)
	{
		int32_t place = sim->cell_start[sim->sphere_bucket[i]]++;
		memcpy(sim->cells[place].x, sim->spheres[i].x, sizeof(sim->spheres[i].x));
		sim->cells[place].sphere = i;
	}
	// The counting pass moved every start to its end: shift back.
	memmove(sim->cell_start + 1, sim->cell_start, table * sizeof(int32_t));
	sim->cell_start[0] = 0;
}

static bool reserve_neighbours(Chunk *chunk, int32_t used, int32_t wanted)
{
	if (used + wanted <= chunk->neighbour_capacity)
	{
		return true;
	}
	int32_t capacity = (used + wanted) * 3 / 2;
	int32_t *grown = sand_alloc((size_t)capacity, sizeof(int32_t));
	if (grown == NULL)
	{
		chunk->is_short = 1;
		return false;
	}
	if (used > 0)
	{
		memcpy(grown, chunk->neighbours, (size_t)used * sizeof(int32_t));
	}
	sand_free(chunk->neighbours);
	chunk->neighbours = grown;
	chunk->neighbour_capacity = capacity;
	return true;
}

static void list_chunk(void *context, int chunk_index)
{
	SandSim *sim = context;
	Chunk *chunk = &sim->chunks[chunk_index];
	int32_t last = chunk->first_sphere + chunk->sphere_count, used = 0;
	float unit = (float)sim->unit;
	for (int32_t i = chunk->first_sphere; i < last; ++i)
	{
		const Sphere *a = &sim->spheres[i];
		int32_t starts[9], ends[9], candidates = 0;
		int rows = 0;
		for (uint32_t z = 0; z < 3; ++z)
		{
			for (uint32_t y = 0; y < 3; ++y)
			{
				// Three buckets along x; a row that wraps around the table's end is read as two pieces below.
				uint32_t middle = sim->sphere_bucket[i] + (y - 1) * sim->row_y + (z - 1) * sim->row_z;
				starts[rows] = (int32_t)((middle - 1) & sim->table_mask);
				ends[rows] = (int32_t)((middle + 1) & sim->table_mask);
				++rows;
			}
		}
		int32_t outer = 0;
		sim->list_start[i] = used;
		for (int pass = 0; pass < 2; ++pass)
		{
			int32_t found = 0;
			for (int row = 0; row < 9; ++row)
			{
				bool is_wrapped = starts[row] > ends[row];
				for (int piece = 0; piece < (is_wrapped ? 2 : 1); ++piece)
				{
					int32_t from = sim->cell_start[is_wrapped && piece == 1 ? 0 : starts[row]];
					int32_t to = sim->cell_start[is_wrapped && piece == 0 ? (int32_t)sim->table_mask + 1 : ends[row] + 1];
					if (pass == 0)
					{
						candidates += to - from;
						continue;
					}
					for (int32_t e = from; e < to; ++e)
					{
						int32_t j = sim->cells[e].sphere;
						bool is_inner = j >= chunk->first_sphere && j < last;
						if (is_inner && j <= i)
						{
							continue;
						}
						float d[3];
						for (int k = 0; k < 3; ++k)
						{
							d[k] = (float)((int64_t)a->x[k] - sim->cells[e].x[k]) * unit;
						}
						const Sphere *b = &sim->spheres[j];
						float reach = a->radius + b->radius + sim->skin;
						if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] >= reach * reach || b->grain == a->grain)
						{
							continue;
						}
						int32_t *list = chunk->neighbours + used;
						if (is_inner)
						{
							list[found + outer] = list[found];
							list[found++] = j;
						}
						else
						{
							list[found + outer++] = j;
						}
					}
				}
			}
			if (pass == 0 && !reserve_neighbours(chunk, used, candidates))
			{
				return;
			}
			sim->list_inner[i] = found;
		}
		sim->list_outer[i] = outer;
		used += sim->list_inner[i] + outer;
	}
}

static SandStatus build_list(SandSim *sim, SandError *err)
{
	sort_grains(sim);
	cut_chunks(sim);
	sand_pool_run(sim->pool, place_chunk, sim, sim->chunk_count);
	fill_cells(sim);
	sand_pool_run(sim->pool, list_chunk, sim, sim->chunk_count);
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		if (sim->chunks[c].is_short)
		{
			sim->chunks[c].is_short = 0;
			return sand_fail_memory(err, (size_t)sim->chunks[c].neighbour_capacity * sizeof(int32_t) * 2,
			                        "the neighbour list");
		}
	}
	return SAND_OK;
}

// ---------------------------------------------------------------------------------------------- life and stepping

static SandStatus allocate(SandSim *sim, SandError *err)
{
	size_t grains = (size_t)sim->grain_count, spheres = (size_t)sim->sphere_count;
	size_t total = spheres + (size_t)sim->wall_count;
	size_t table = 64;
	while (table < 2 * total)
	{
		table *= 2;
	}
	sim->table_mask = (uint32_t)(table - 1);
	sim->grains = sand_alloc(grains, sizeof(Grain));
	sim->grains_spare = sand_alloc(grains, sizeof(Grain));
	sim->keys = sand_alloc(2 * grains, sizeof(uint64_t));
	sim->keys_spare = sand_alloc(2 * grains, sizeof(uint64_t));
	sim->spheres = sand_alloc(total, sizeof(Sphere));
	sim->sums = sand_alloc(spheres, sizeof(SphereSum));
	sim->list_start = sand_alloc(spheres, sizeof(int32_t));
	sim->list_inner = sand_alloc(spheres, sizeof(int32_t));
	sim->list_outer = sand_alloc(spheres, sizeof(int32_t));
	sim->cells = sand_alloc(total, sizeof(CellEntry));
	sim->cell_start = sand_alloc(table + 4, sizeof(int32_t));
	sim->sphere_bucket = sand_alloc(total, sizeof(uint32_t));
	sim->chunks = sand_alloc(spheres / CHUNK_SPHERES + 1, sizeof(Chunk));
	if (sim->grains == NULL || sim->grains_spare == NULL || sim->keys == NULL || sim->keys_spare == NULL ||
	    sim->spheres == NULL || sim->sums == NULL || sim->list_start == NULL || sim->list_inner == NULL ||
	    sim->list_outer == NULL || sim->cells == NULL || sim->cell_start == NULL || sim->sphere_bucket == NULL ||
	    sim->chunks == NULL)
	{
		return sand_fail_memory(err, total * (sizeof(Sphere) + sizeof(SphereSum)) + grains * 2 * sizeof(Grain),
		                        "the simulator's state");
	}
	return SAND_OK;
}

// Strides of the bucket of a cell: rows of different (y, z) must not share buckets, or a pair would be listed twice.
static void choose_rows(SandSim *sim)
{
	uint32_t mask = sim->table_mask;
	for (uint32_t attempt = 0;; ++attempt)
	{
		sim->row_y = (UINT32_C(0x9E3779B1) * (2 * attempt + 1)) & mask;
		sim->row_z = (UINT32_C(0x85EBCA77) * (2 * attempt + 1)) & mask;
		bool is_good = true;
		for (int a = 0; a < 25; ++a)
		{
			// Differences of two rows are (-2..2, -2..2); each must be at least 3 buckets from the same row.
			uint32_t offset = (uint32_t)(a % 5 - 2) * sim->row_y + (uint32_t)(a / 5 - 2) * sim->row_z;
			uint32_t forward = offset & mask, backward = (0u - offset) & mask;
			is_good = is_good && (a == 12 || (forward > 2 && backward > 2));
		}
		if (is_good)
		{
			return;
		}
	}
}

static void set_scales(SandSim *sim)
{
	const SandScene *scene = sim->scene;
	double extent = 0;
	for (int k = 0; k < 3; ++k)
	{
		sim->origin[k] = 0.5 * (scene->domain_min[k] + scene->domain_max[k]);
		extent = fmax(extent, scene->domain_max[k] - scene->domain_min[k]);
	}
	// A power of two, so that conversion is exact, with the grains' own size as room at the border.
	sim->unit = exp2(ceil(log2((extent + 8.0 * (double)scene->radius_max) / 2147483648.0)));
	sim->skin = SKIN_SHARE * scene->radius_min;
	double cell = 2.0 * (double)scene->radius_max + (double)sim->skin;
	sim->cell_inverse = sim->unit / cell;
	sim->speed_limit = (float)fmax(20 * scene->max_speed, 0.5 * (double)scene->radius_min / sim->step_limit);
}

static void load_scene(SandSim *sim)
{
	const SandScene *scene = sim->scene;
	for (int i = 0; i < scene->grain_count; ++i)
	{
		Grain *grain = &sim->grains[i];
		const SandShape *shape = &scene->shapes[scene->grain_shapes[i]];
		double q[4], m[3][3], body[3];
		for (int k = 0; k < 4; ++k)
		{
			q[k] = scene->grain_orientations[4 * i + k];
		}
		quaternion_normalise(q);
		quaternion_multiply(q, shape->axes, grain->orientation);
		quaternion_normalise(grain->orientation);
		rotation_of(grain->orientation, m);
		for (int k = 0; k < 3; ++k)
		{
			grain->position[k] = scene->grain_positions[3 * i + k];
			grain->velocity[k] = scene->grain_velocities[3 * i + k];
			body[k] = shape->inertia[k] * (m[0][k] * (double)scene->grain_spins[3 * i] +
			                               m[1][k] * (double)scene->grain_spins[3 * i + 1] +
			                               m[2][k] * (double)scene->grain_spins[3 * i + 2]);
		}
		for (int k = 0; k < 3; ++k)
		{
			grain->momentum[k] = m[k][0] * body[0] + m[k][1] * body[1] + m[k][2] * body[2];
		}
		grain->id = i;
		grain->shape = scene->grain_shapes[i];
	}
	for (int i = 0; i < scene->wall_count; ++i)
	{
		Sphere *wall = &sim->spheres[sim->sphere_count + i];
		for (int k = 0; k < 3; ++k)
		{
			wall->x[k] = wall->x_listed[k] = to_fixed(sim, scene->wall_positions[3 * i + k], k);
		}
		wall->radius = scene->wall_radius;
		wall->mass = WALL_MASS;
		wall->grain = -1;
	}
}

SandStatus sand_sim_create(const SandScene *scene, const SandSimDesc *desc, SandSim **sim_out, SandError *err)
{
	*sim_out = NULL;
	if (!(desc->step_seconds >= 0) || !isfinite(desc->step_seconds))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The step is %g s, expected a positive number (0 = automatic)",
		                 desc->step_seconds);
	}
	SandSim *sim = sand_alloc(1, sizeof(*sim));
	if (sim == NULL)
	{
		return sand_fail_memory(err, sizeof(*sim), "the simulator");
	}
	sim->scene = scene;
	sim->grain_count = scene->grain_count;
	sim->sphere_count = (int)scene->sphere_count;
	sim->wall_count = scene->wall_count;
	sim->step_limit = desc->step_seconds > 0 ? desc->step_seconds : scene->contact_time / STEPS_PER_CONTACT;
	set_scales(sim);
	SandStatus status = sand_pool_create(desc->thread_count, &sim->pool, err);
	status = status != SAND_OK ? status : allocate(sim, err);
	if (status != SAND_OK)
	{
		sand_sim_destroy(sim);
		return status;
	}
	choose_rows(sim);
	load_scene(sim);
	*sim_out = sim;
	return SAND_OK;
}

void sand_sim_destroy(SandSim *sim)
{
	if (sim == NULL)
	{
		return;
	}
	size_t chunk_limit = (size_t)sim->sphere_count / CHUNK_SPHERES + 1;
	for (size_t c = 0; sim->chunks != NULL && c < chunk_limit; ++c)
	{
		sand_free(sim->chunks[c].neighbours);
	}
	sand_pool_destroy(sim->pool);
	sand_free(sim->grains);
	sand_free(sim->grains_spare);
	sand_free(sim->keys);
	sand_free(sim->keys_spare);
	sand_free(sim->spheres);
	sand_free(sim->sums);
	sand_free(sim->list_start);
	sand_free(sim->list_inner);
	sand_free(sim->list_outer);
	sand_free(sim->cells);
	sand_free(sim->cell_start);
	sand_free(sim->sphere_bucket);
	sand_free(sim->chunks);
	sand_free(sim);
}

static SandStatus report_bad_grain(SandSim *sim, SandError *err)
{
	int32_t bad = INT32_MAX;
	double speed = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		if (sim->chunks[c].bad_grain < bad)
		{
			bad = sim->chunks[c].bad_grain;
			speed = sim->chunks[c].bad_speed;
		}
	}
	if (bad == INT32_MAX)
	{
		return SAND_OK;
	}
	sim->is_failed = true;
	return sand_fail(err, SAND_ERROR_UNSTABLE,
	                 "Grain %d reached %g m/s at %.4f s, expected less than %g m/s; grains that overlap at the start or a "
	                 "step that is too long (%g s) do this: fill with more room or lower the step",
	                 bad, speed, sim->time, (double)sim->speed_limit, sim->step);
}

static bool needs_list(const SandSim *sim)
{
	bool needs = false;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		needs = needs || sim->chunks[c].needs_list;
	}
	return needs;
}

SandStatus sand_sim_advance(SandSim *sim, double seconds, SandCancel *cancel, SandError *err)
{
	if (!(seconds >= 0) || !isfinite(seconds))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The time to advance is %g s, expected zero or more", seconds);
	}
	if (sim->is_failed)
	{
		return sand_fail(err, SAND_ERROR_UNSTABLE,
		                 "The simulation stopped at %.4f s because it became unstable and cannot go on", sim->time);
	}
	if (seconds == 0)
	{
		return SAND_OK;
	}
	double wanted = ceil(seconds / sim->step_limit * (1 - 1e-12));
	if (wanted > 1e12)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Advancing %g s would take %g steps of %g s, expected at most 1e12; use larger grains", seconds,
		                 wanted, sim->step_limit);
	}
	int64_t steps = wanted < 1 ? 1 : (int64_t)wanted;
	double begin = sim->time;
	sim->step = seconds / (double)steps;
	// Every call starts from a fresh list and fresh forces, so that the state between calls is the grains' alone.
	SandStatus status = build_list(sim, err);
	if (status != SAND_OK)
	{
		return status;
	}
	sand_pool_run(sim->pool, force_only_chunk, sim, sim->chunk_count);
	for (int64_t i = 0; i < steps; ++i)
	{
		if (cancel != NULL && cancel->is_raised)
		{
			return sand_fail(err, SAND_CANCELLED, "The simulation was cancelled at %.4f s", sim->time);
		}
		sand_pool_run(sim->pool, drift_chunk, sim, sim->chunk_count);
		status = report_bad_grain(sim, err);
		if (status == SAND_OK && needs_list(sim))
		{
			status = build_list(sim, err);
		}
		if (status != SAND_OK)
		{
			sim->is_failed = true;
			return status;
		}
		sand_pool_run(sim->pool, force_and_kick_chunk, sim, sim->chunk_count);
		sim->time = begin + seconds * (double)(i + 1) / (double)steps;
		++sim->step_count;
	}
	return SAND_OK;
}

SandSimInfo sand_sim_info(const SandSim *sim)
{
	SandSimInfo info = {.time = sim->time,
	                    .step_seconds = sim->step_limit,
	                    .step_count = sim->step_count,
	                    .grain_count = sim->grain_count,
	                    .sphere_count = sim->sphere_count};
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		info.contact_count += sim->chunks[c].contact_count;
	}
	info.contact_count /= 2;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const Grain *grain = &sim->grains[i];
		const SandShape *shape = &sim->scene->shapes[grain->shape];
		double spin[3];
		spin_of(shape, grain->orientation, grain->momentum, spin);
		info.lost_count += grain->is_lost;
		for (int k = 0; k < 3; ++k)
		{
			info.kinetic_energy += 0.5 * shape->mass * grain->velocity[k] * grain->velocity[k];
			info.kinetic_energy += 0.5 * grain->momentum[k] * spin[k];
		}
	}
	return info;
}

void sand_sim_read(const SandSim *sim, const SandSimArrays *arrays)
{
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const Grain *grain = &sim->grains[i];
		const SandShape *shape = &sim->scene->shapes[grain->shape];
		size_t id = (size_t)grain->id;
		double back[4] = {shape->axes[0], -shape->axes[1], -shape->axes[2], -shape->axes[3]}, q[4], spin[3];
		quaternion_multiply(grain->orientation, back, q);
		spin_of(shape, grain->orientation, grain->momentum, spin);
		for (size_t k = 0; k < 3; ++k)
		{
			if (arrays->positions != NULL)
			{
				arrays->positions[3 * id + k] = (float)grain->position[k];
			}
			if (arrays->velocities != NULL)
			{
				arrays->velocities[3 * id + k] = (float)grain->velocity[k];
			}
			if (arrays->spins != NULL)
			{
				arrays->spins[3 * id + k] = (float)spin[k];
			}
		}
		for (size_t k = 0; k < 4 && arrays->orientations != NULL; ++k)
		{
			arrays->orientations[4 * id + k] = (float)q[k];
		}
	}
}

uint64_t sand_sim_hash(const SandSim *sim)
{
	// Summed over grains, each hashed with its id, so that the order in memory does not matter.
	uint64_t hash = sand_hash64(&sim->time, sizeof(sim->time), 0);
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const Grain *grain = &sim->grains[i];
		hash += sand_hash64(grain, offsetof(Grain, force), (uint64_t)grain->id + 1);
	}
	return hash;
}
