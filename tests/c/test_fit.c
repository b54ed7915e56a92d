// Tests of fit: spacing, uncovered area, distances, volumes and masses against closed forms and brute force; factors,
// refusals, cancelling, failed allocations, and the same bits for every thread count.
#include "fit.h"
#include "shapes.h"

typedef struct Spheres
{
	float *centres, *radii;
	int count;
} Spheres;

static Spheres spheres_of(int count)
{
	return (Spheres){calloc((size_t)count * 3, sizeof(float)), calloc((size_t)count, sizeof(float)), count};
}

static void spheres_free(Spheres *spheres)
{
	free(spheres->centres);
	free(spheres->radii);
}

static const float *centre_at(const Spheres *spheres, int i)
{
	return spheres->centres + 3 * (size_t)i;
}

static void put_sphere(Spheres *spheres, int i, double x, double y, double z, double radius)
{
	spheres->centres[3 * (size_t)i] = (float)x;
	spheres->centres[3 * (size_t)i + 1] = (float)y;
	spheres->centres[3 * (size_t)i + 2] = (float)z;
	spheres->radii[i] = (float)radius;
}

// Within the box -1 .. 1, every tenth in the place of one before.
static Spheres random_spheres(int count, double radius_min, double radius_max)
{
	Spheres spheres = spheres_of(count);
	for (int i = 0; i < count; ++i)
	{
		uint64_t at = i % 10 == 9 ? (uint64_t)i - 7 : (uint64_t)i;
		put_sphere(&spheres, i, 2 * sand_random(1, 3 * at) - 1, 2 * sand_random(1, 3 * at + 1) - 1,
		           2 * sand_random(1, 3 * at + 2) - 1,
		           radius_min + (radius_max - radius_min) * sand_random(2, (uint64_t)i));
	}
	return spheres;
}

static SandFitDesc desc_of(const Spheres *spheres)
{
	return (SandFitDesc){.centres = spheres->centres, .radii = spheres->radii, .sphere_count = spheres->count};
}

typedef struct Body
{
	SandMesh *mesh;
	SandSurface *surface;
} Body;

static Body body_of(TestShape *shape)
{
	Body body = {test_shape_mesh(shape, "body"), NULL};
	SandError err = {0};
	CHECK_STATUS(sand_surface_create(body.mesh, NULL, &body.surface, &err), SAND_OK, &err);
	test_shape_free(shape);
	return body;
}

static Body unit_cube(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, (const float[3]){0, 0, 0}, (const float[3]){1, 1, 1}, false);
	return body_of(&shape);
}

static void body_free(Body *body)
{
	sand_surface_destroy(body->surface);
	sand_mesh_destroy(body->mesh);
}

static SandFit measure(const Body *body, const SandFitDesc *desc)
{
	SandFit fit;
	SandError err = {0};
	CHECK_STATUS(sand_fit_measure(body->surface, desc, NULL, &fit, &err), SAND_OK, &err);
	return fit;
}

static double ball_volume(double radius)
{
	return 4.0 / 3.0 * TEST_PI * radius * radius * radius;
}

// m^3, of two balls at a distance where they cut each other.
static double lens_volume(double a, double b, double d)
{
	double rest = a + b - d;
	return TEST_PI * rest * rest * (d * d + 2 * d * (a + b) - 3 * (a - b) * (a - b)) / (12 * d);
}

// ---- spacing

static double centre_distance(const float *a, const float *b)
{
	double x = (double)a[0] - (double)b[0], y = (double)a[1] - (double)b[1], z = (double)a[2] - (double)b[2];
	return sqrt(x * x + y * y + z * z);
}

static void spacing_is_that_of_brute_force(void)
{
	static const int counts[] = {2, 7, 8, 9, 65, 700};
	Body cube = unit_cube();
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); ++n)
	{
		Spheres spheres = random_spheres(counts[n], 0.01, 0.02);
		double least = (double)INFINITY, most = 0, sum = 0;
		for (int i = 0; i < spheres.count; ++i)
		{
			double nearest = (double)INFINITY;
			for (int j = 0; j < spheres.count; ++j)
			{
				double distance = centre_distance(centre_at(&spheres, i), centre_at(&spheres, j));
				nearest = i != j ? fmin(nearest, distance) : nearest;
			}
			least = fmin(least, nearest);
			most = fmax(most, nearest);
			sum += nearest;
		}
		SandFitDesc desc = desc_of(&spheres);
		SandFit fit = measure(&cube, &desc);
		CHECK_INT(fit.sphere_count, spheres.count);
		CHECK_NEAR(fit.spacing_min, least, 1e-14);
		CHECK_NEAR(fit.spacing_max, most, 1e-14);
		CHECK_NEAR(fit.spacing_mean, sum / spheres.count, 1e-14);
		CHECK_NEAR(fit.evenness, least / (sum / spheres.count), 1e-12);
		spheres_free(&spheres);
	}
	body_free(&cube);
}

static void a_close_packed_lattice_is_even(void)
{
	enum
	{
		SIDE = 12
	};
	Body cube = unit_cube();
	Spheres spheres = spheres_of(SIDE * SIDE * SIDE);
	double spacing = 0.07;
	for (int i = 0; i < spheres.count; ++i)
	{
		int x = i % SIDE, y = i / SIDE % SIDE, z = i / (SIDE * SIDE);
		put_sphere(&spheres, i, spacing * (x + 0.5 * (y % 2) + 0.5 * (z % 2)),
		           spacing * sqrt(3) * (0.5 * y + (z % 2) / 6.0), spacing * sqrt(2.0 / 3) * z, 0.5 * spacing);
	}
	SandFitDesc desc = desc_of(&spheres);
	SandFit fit = measure(&cube, &desc);
	CHECK_NEAR(fit.spacing_min, spacing, 2e-7);
	CHECK_NEAR(fit.spacing_mean, spacing, 1e-7);
	CHECK_NEAR(fit.spacing_max, spacing, 2e-7);
	CHECK(fit.evenness > 0.99999);
	// Spheres touch and no more: their volumes add up.
	CHECK_NEAR(fit.sphere_volume / (spheres.count * ball_volume(0.5 * spacing)), 1, 1e-6);
	spheres_free(&spheres);
	body_free(&cube);
}

// ---- area and distance

static void bare_area_is_what_discs_leave(void)
{
	Body cube = unit_cube();
	Spheres spheres = spheres_of(2);
	put_sphere(&spheres, 0, 0.5, 0.5, 0, 0.3);
	put_sphere(&spheres, 1, 0.5, 0, 0.6, 0.2);
	SandFitDesc desc = desc_of(&spheres);
	CHECK_NEAR(measure(&cube, &desc).uncovered_share, 1 - TEST_PI * (0.09 + 0.04) / 6, 1e-3);
	// Spheres on a level within are grown by the level's depth: 0.3 from a centre 0.1 deep.
	put_sphere(&spheres, 0, 0.5, 0.5, 0.1, 0.2);
	desc.sphere_count = 1;
	desc.offset = -0.1F;
	CHECK_NEAR(measure(&cube, &desc).uncovered_share, 1 - TEST_PI * 0.08 / 6, 1e-3);
	desc.is_filling = true;
	CHECK_NEAR(measure(&cube, &desc).uncovered_share, 0, 0);
	// One that holds all.
	put_sphere(&spheres, 0, 0.5, 0.5, 0.5, 0.87);
	desc = desc_of(&spheres);
	desc.sphere_count = 1;
	CHECK_NEAR(measure(&cube, &desc).uncovered_share, 0, 0);
	spheres_free(&spheres);
	body_free(&cube);
}

static void bare_area_does_not_depend_on_the_triangles(void)
{
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	TestShape shape = {0};
	test_shape_grid_box(&shape, low, high, 30);
	Body cube = body_of(&shape);
	Spheres spheres = spheres_of(1);
	put_sphere(&spheres, 0, 0.5, 0.5, 0, 0.3);
	SandFitDesc desc = desc_of(&spheres);
	CHECK_NEAR(measure(&cube, &desc).uncovered_share, 1 - TEST_PI * 0.09 / 6, 1e-3);
	spheres_free(&spheres);
	body_free(&cube);
}

static void distance_is_the_worst_of_both_sides(void)
{
	Body cube = unit_cube();
	Spheres spheres = spheres_of(1);
	SandFitDesc desc = desc_of(&spheres);
	put_sphere(&spheres, 0, 0.5, 0.5, 0, 0.3);
	CHECK_NEAR(measure(&cube, &desc).hausdorff, sqrt(1.5) - 0.3, 1e-6);
	put_sphere(&spheres, 0, 0.5, 0.5, 0.5, 0.4);
	CHECK_NEAR(measure(&cube, &desc).hausdorff, sqrt(0.75) - 0.4, 1e-6);
	put_sphere(&spheres, 0, 0.5, 0.5, 0.5, 1.2);
	CHECK_NEAR(measure(&cube, &desc).hausdorff, 0.7, 1e-6);
	put_sphere(&spheres, 0, 0.5, 0.5, 3, 0.5);
	CHECK_NEAR(measure(&cube, &desc).hausdorff, sqrt(9.5) - 0.5, 1e-6);
	spheres_free(&spheres);
	// A cover of centres on the mesh: one radius.
	spheres = spheres_of(6 * 21 * 21);
	for (int i = 0; i < spheres.count; ++i)
	{
		double at[3] = {(i / 6 % 21) / 20.0, (i / 6 / 21) / 20.0, i % 2};
		int axis = i % 6 / 2;
		put_sphere(&spheres, i, at[(axis + 1) % 3], at[(axis + 2) % 3], at[axis], 0.05);
	}
	desc = desc_of(&spheres);
	SandFit fit = measure(&cube, &desc);
	CHECK_NEAR(fit.hausdorff, 0.05, 1e-7);
	CHECK_NEAR(fit.uncovered_share, 0, 0);
	spheres_free(&spheres);
	body_free(&cube);
}

static void distance_is_that_of_brute_force(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1.5F, 4);
	Body body = body_of(&shape);
	Spheres spheres = random_spheres(300, 0.01, 0.3);
	double farthest = 0;
	for (int v = 0; v < body.mesh->vertex_count; ++v)
	{
		double nearest = (double)INFINITY;
		for (int i = 0; i < spheres.count; ++i)
		{
			nearest = fmin(nearest, centre_distance(centre_at(&spheres, i), &body.mesh->vertices[3 * v]) -
			                            (double)spheres.radii[i]);
		}
		farthest = fmax(farthest, nearest);
	}
	SandFitDesc desc = desc_of(&spheres);
	double found = measure(&body, &desc).hausdorff;
	CHECK(found >= farthest - 1e-12);
	CHECK(found < farthest + 0.06); // no place is farther than that from a vertex
	spheres_free(&spheres);
	body_free(&body);
}

// ---- volume

static void volume_of_two_balls_has_a_closed_form(void)
{
	Body cube = unit_cube();
	Spheres spheres = spheres_of(2);
	double worst = 0;
	for (int i = 0; i < 24; ++i)
	{
		double small = i % 2 == 0 ? 1 : 0.4, d = 0.05 + 0.1 * i, rest = 1 - small;
		double theta = 2.0 * i, z = cos(3.0 * i);
		put_sphere(&spheres, 0, 0, 0, 0, 1);
		put_sphere(&spheres, 1, d * sqrt(1 - z * z) * cos(theta), d * sqrt(1 - z * z) * sin(theta), d * z, small);
		d = centre_distance(spheres.centres, spheres.centres + 3);
		small = (double)spheres.radii[1];
		double expected = ball_volume(1) + ball_volume(small);
		expected -= d >= 1 + small ? 0 : d <= rest ? ball_volume(small) : lens_volume(1, small, d);
		SandFitDesc desc = desc_of(&spheres);
		double error = fabs(measure(&cube, &desc).sphere_volume / expected - 1);
		worst = fmax(worst, error);
		CHECK(error < (d >= 1 + small || d <= rest ? 1e-12 : 5e-4));
	}
	CHECK(worst > 0); // the sampled ones were among them
	spheres_free(&spheres);
	body_free(&cube);
}

// Share of the box -1.5 .. 1.5 that is in a sphere, counted in the middles of cells.
static double counted_volume(const Spheres *spheres, int side)
{
	int64_t count = 0;
	for (int cell = 0; cell < side * side * side; ++cell)
	{
		const float place[3] = {(float)(3 * (cell % side + 0.5) / side - 1.5),
		                        (float)(3 * (cell / side % side + 0.5) / side - 1.5),
		                        (float)(3 * (cell / side / side + 0.5) / side - 1.5)};
		bool is_in = false;
		for (int i = 0; i < spheres->count && !is_in; ++i)
		{
			is_in = centre_distance(centre_at(spheres, i), place) < (double)spheres->radii[i];
		}
		count += is_in;
	}
	return 27.0 * (double)count / ((double)side * side * side);
}

static void volume_of_many_balls_is_that_of_brute_force(void)
{
	Body cube = unit_cube();
	static const double ranges[][2] = {{0.1, 0.5}, {0.2, 0.2}, {0.02, 0.3}};
	for (int n = 0; n < 3; ++n)
	{
		Spheres spheres = random_spheres(60, ranges[n][0], ranges[n][1]);
		SandFitDesc desc = desc_of(&spheres);
		double expected = counted_volume(&spheres, 60);
		CHECK_NEAR(measure(&cube, &desc).sphere_volume / expected, 1, 3e-3);
		spheres_free(&spheres);
	}
	body_free(&cube);
}

static void factor_gives_the_volume_wanted(void)
{
	SandError err = {0};
	double factor = 0;
	// Two balls a diameter apart never meet while they shrink.
	Spheres spheres = spheres_of(2);
	put_sphere(&spheres, 0, 0, 0, 0, 1);
	put_sphere(&spheres, 1, 2, 0, 0, 1);
	SandFitDesc desc = desc_of(&spheres);
	CHECK_STATUS(sand_fit_radius_factor(&desc, 2 * ball_volume(0.3), NULL, &factor, &err), SAND_OK, &err);
	CHECK_NEAR(factor, 0.3, 1e-4);
	for (double wanted = 1.01; wanted < 8; wanted *= 1.4)
	{
		CHECK_STATUS(sand_fit_radius_factor(&desc, 2 * ball_volume(wanted), NULL, &factor, &err), SAND_OK, &err);
		double volume = 2 * ball_volume(factor) - lens_volume(factor, factor, 2);
		CHECK_NEAR(volume / (2 * ball_volume(wanted)), 1, 1e-3);
	}
	spheres_free(&spheres);
	spheres = random_spheres(60, 0.1, 0.5);
	desc = desc_of(&spheres);
	for (double volume = 0.5; volume < 20; volume *= 3)
	{
		CHECK_STATUS(sand_fit_radius_factor(&desc, volume, NULL, &factor, &err), SAND_OK, &err);
		Spheres scaled = spheres_of(spheres.count);
		for (int i = 0; i < spheres.count; ++i)
		{
			const float *centre = centre_at(&spheres, i);
			put_sphere(&scaled, i, (double)centre[0], (double)centre[1], (double)centre[2],
			           factor * (double)spheres.radii[i]);
		}
		if (volume < 5) // larger ones leave the box that is counted
		{
			CHECK_NEAR(counted_volume(&scaled, 60) / volume, 1, 4e-3);
		}
		SandFitDesc scaled_desc = desc_of(&scaled);
		Body cube = unit_cube();
		CHECK_NEAR(measure(&cube, &scaled_desc).sphere_volume / volume, 1, 1e-3);
		body_free(&cube);
		spheres_free(&scaled);
	}
	spheres_free(&spheres);
}

// ---- masses

// Sum, centre and inertia of the spheres with these masses, checked against the wanted, scaled to `mass`.
static void check_masses(const SandMass *wanted, double mass, const Spheres *spheres, const double *masses,
                         double tolerance)
{
	double sum = 0, centre[3] = {0}, inertia[6] = {0};
	double size = sqrt(wanted->inertia[0] / wanted->volume), scale = mass / wanted->volume;
	for (int i = 0; i < spheres->count; ++i)
	{
		sum += masses[i];
		for (int k = 0; k < 3; ++k)
		{
			centre[k] += masses[i] * (double)spheres->centres[3 * (size_t)i + (size_t)k] / mass;
		}
	}
	for (int i = 0; i < spheres->count; ++i)
	{
		double d[3], own = 0.4 * (double)spheres->radii[i] * (double)spheres->radii[i];
		for (int k = 0; k < 3; ++k)
		{
			d[k] = (double)spheres->centres[3 * (size_t)i + (size_t)k] - centre[k];
		}
		for (int k = 0; k < 3; ++k)
		{
			int a = (k + 1) % 3, b = (k + 2) % 3;
			inertia[k] += masses[i] * (d[a] * d[a] + d[b] * d[b] + own);
		}
		inertia[3] -= masses[i] * d[0] * d[1];
		inertia[4] -= masses[i] * d[0] * d[2];
		inertia[5] -= masses[i] * d[1] * d[2];
	}
	CHECK_NEAR(sum, mass, 1e-9 * mass);
	for (int k = 0; k < 3; ++k)
	{
		CHECK_NEAR(centre[k], wanted->centre[k], tolerance * size);
	}
	for (int k = 0; k < 6; ++k)
	{
		CHECK_NEAR(inertia[k], wanted->inertia[k] * scale, tolerance * wanted->inertia[0] * scale);
	}
}

static void masses_give_volume_centre_and_inertia_of_a_box(void)
{
	const float low[3] = {-0.9F, -0.8F, -0.7F}, high[3] = {0.8F, 0.9F, 0.95F};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	Body box = body_of(&shape);
	SandMass wanted = sand_mesh_mass(box.mesh);
	for (int n = 0; n < 2; ++n)
	{
		Spheres spheres = random_spheres(400, 0.02, n == 0 ? 0.02 : 0.1);
		SandFitDesc desc = desc_of(&spheres);
		double *masses = calloc((size_t)spheres.count, sizeof(double)), least = (double)INFINITY;
		CHECK(sand_fit_masses(&wanted, 3.5, &desc, masses));
		check_masses(&wanted, 3.5, &spheres, masses, 1e-9);
		for (int i = 0; i < spheres.count; ++i)
		{
			least = fmin(least, masses[i]);
		}
		CHECK(least >= 0.00999 * 3.5 / spheres.count);
		SandFit fit = measure(&box, &desc);
		CHECK(fit.inertia_error_raw > 1e-3);
		CHECK(fit.inertia_error < 1e-9);
		CHECK_NEAR(fit.mesh_volume, 1.7 * 1.7 * 1.65, 1e-6);
		CHECK_NEAR(fit.volume_error, fabs(fit.sphere_volume / fit.mesh_volume - 1), 1e-15);
		free(masses);
		spheres_free(&spheres);
	}
	body_free(&box);
}

static void masses_of_a_cross_have_a_closed_form(void)
{
	Spheres spheres = spheres_of(7);
	for (int i = 0; i < 6; ++i)
	{
		double at[3] = {0};
		at[i / 2] = i % 2 == 0 ? 1 : -1;
		put_sphere(&spheres, i, at[0], at[1], at[2], 0.1);
	}
	put_sphere(&spheres, 6, 0, 0, 0, 0.1);
	SandFitDesc desc = desc_of(&spheres);
	SandMass ball = {.volume = ball_volume(1)};
	for (int k = 0; k < 3; ++k)
	{
		ball.inertia[k] = 0.4 * ball.volume;
	}
	double masses[7], radius = (double)0.1F;
	CHECK(sand_fit_masses(&ball, 1, &desc, masses));
	for (int i = 0; i < 7; ++i)
	{
		double arm = (0.4 - 0.4 * radius * radius) / 4;
		CHECK_NEAR(masses[i], i < 6 ? arm : 1 - 6 * arm, 1e-9);
	}
	spheres_free(&spheres);
}

static void masses_near_the_limit_are_held_and_the_rest_still_fits(void)
{
	// A box much smaller than the cloud: the outer masses must go down to the least.
	Spheres spheres = random_spheres(2000, 0.02, 0.02);
	SandFitDesc desc = desc_of(&spheres);
	SandMass wanted = {.volume = 1};
	wanted.inertia[0] = wanted.inertia[1] = wanted.inertia[2] = 0.25;
	double *masses = calloc((size_t)spheres.count, sizeof(double)), least = (double)INFINITY;
	CHECK(sand_fit_masses(&wanted, 2, &desc, masses));
	check_masses(&wanted, 2, &spheres, masses, 1e-9);
	int held_count = 0;
	for (int i = 0; i < spheres.count; ++i)
	{
		least = fmin(least, masses[i]);
		held_count += masses[i] < 0.01001 * 2 / spheres.count;
	}
	CHECK(held_count > 0);
	CHECK(least > 0.00999 * 2 / spheres.count);
	free(masses);
	spheres_free(&spheres);
}

static void masses_that_cannot_be_are_refused(void)
{
	Spheres spheres = spheres_of(2);
	put_sphere(&spheres, 0, -1, 0, 0, 0.1);
	put_sphere(&spheres, 1, 1, 0, 0, 0.1);
	SandFitDesc desc = desc_of(&spheres);
	SandMass wanted = {.volume = 1, .inertia = {0.4, 0.4, 0.4}};
	double masses[2];
	CHECK(!sand_fit_masses(&wanted, 3, &desc, masses));
	CHECK_NEAR(masses[0], 1.5, 1e-9);
	CHECK_NEAR(masses[1], 1.5, 1e-9);
	// All on one side of the centre wanted.
	wanted.centre[0] = 5;
	CHECK(!sand_fit_masses(&wanted, 3, &desc, masses));
	CHECK_NEAR(masses[0] + masses[1], 3, 1e-9);
	CHECK(masses[0] > 0 && masses[1] > 0);
	spheres_free(&spheres);
}

static void open_meshes_have_no_volume_to_compare(void)
{
	TestShape shape = {0};
	test_shape_open_cylinder(&shape, 1, 2, 32);
	Body body = body_of(&shape);
	Spheres spheres = random_spheres(50, 0.1, 0.2);
	SandFitDesc desc = desc_of(&spheres);
	SandFit fit = measure(&body, &desc);
	CHECK(fit.sphere_volume > 0);
	CHECK_NEAR(fit.mesh_volume + fit.volume_error + fit.inertia_error + fit.inertia_error_raw, 0, 0);
	spheres_free(&spheres);
	body_free(&body);
}

// ---- one sphere, refusals, threads

static void one_sphere_and_a_heap_in_one_place_are_fine(void)
{
	Body cube = unit_cube();
	Spheres spheres = spheres_of(5000);
	for (int i = 0; i < spheres.count; ++i)
	{
		put_sphere(&spheres, i, 0.5, 0.5, 0.5, 0.25);
	}
	SandFitDesc desc = desc_of(&spheres);
	SandFit fit = measure(&cube, &desc);
	CHECK_NEAR(fit.spacing_max, 0, 0);
	CHECK_NEAR(fit.evenness, 0, 0);
	CHECK_NEAR(fit.sphere_volume, ball_volume(0.25), 1e-12);
	desc.sphere_count = 1;
	fit = measure(&cube, &desc);
	CHECK_NEAR(fit.spacing_min + fit.spacing_mean + fit.spacing_max + fit.evenness, 0, 0);
	CHECK_NEAR(fit.sphere_volume, ball_volume(0.25), 1e-12);
	CHECK_NEAR(fit.volume_error, 1 - ball_volume(0.25), 1e-6);
	spheres_free(&spheres);
	body_free(&cube);
}

static void bad_spheres_are_named(void)
{
	Body cube = unit_cube();
	Spheres spheres = random_spheres(20, 0.1, 0.2);
	SandFitDesc good = desc_of(&spheres), desc = good;
	SandFit fit = {.sphere_count = 7};
	SandError err = {0};
	double factor = 0;
	desc.sphere_count = 0;
	CHECK_STATUS(sand_fit_measure(cube.surface, &desc, NULL, &fit, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_INT(fit.sphere_count, 0);
	CHECK_CONTAINS(err.message, "0 spheres");
	CHECK_STATUS(sand_fit_radius_factor(&desc, 1, NULL, &factor, &err), SAND_ERROR_ARGUMENT, &err);
	spheres.radii[13] = 0;
	CHECK_STATUS(sand_fit_measure(cube.surface, &good, NULL, &fit, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "Sphere 13 of 20");
	spheres.radii[13] = NAN;
	CHECK_STATUS(sand_fit_measure(cube.surface, &good, NULL, &fit, &err), SAND_ERROR_ARGUMENT, &err);
	spheres.radii[13] = 0.1F;
	spheres.centres[3 * 4 + 1] = INFINITY;
	CHECK_STATUS(sand_fit_measure(cube.surface, &good, NULL, &fit, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "Sphere 4 of 20");
	spheres.centres[3 * 4 + 1] = 0;
	desc = good;
	desc.radii = NULL;
	desc.radius = -1;
	CHECK_STATUS(sand_fit_measure(cube.surface, &desc, NULL, &fit, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "-1 m");
	desc = good;
	desc.offset = NAN;
	CHECK_STATUS(sand_fit_measure(cube.surface, &desc, NULL, &fit, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "offset");
	CHECK_STATUS(sand_fit_radius_factor(&good, 0, NULL, &factor, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_fit_radius_factor(&good, NAN, NULL, &factor, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "m^3");
	SandCancel cancel = {1};
	good.cancel = &cancel;
	CHECK_STATUS(sand_fit_measure(cube.surface, &good, NULL, &fit, &err), SAND_CANCELLED, &err);
	CHECK_INT(fit.sphere_count, 0);
	CHECK_STATUS(sand_fit_radius_factor(&good, 1, NULL, &factor, &err), SAND_CANCELLED, &err);
	CHECK_NEAR(factor, 1, 0);
	spheres_free(&spheres);
	body_free(&cube);
}

static void every_thread_count_gives_the_same_bits(void)
{
	Body cube = unit_cube();
	Spheres spheres = random_spheres(3000, 0.01, 0.1);
	SandFitDesc desc = desc_of(&spheres);
	SandFit alone = measure(&cube, &desc);
	double factor_alone = 0;
	SandError err = {0};
	CHECK_STATUS(sand_fit_radius_factor(&desc, 1, NULL, &factor_alone, &err), SAND_OK, &err);
	for (int threads = 1; threads <= 3; ++threads)
	{
		SandPool *pool = NULL;
		SandFit fit;
		double factor = 0;
		CHECK_STATUS(sand_pool_create(threads, &pool, &err), SAND_OK, &err);
		CHECK_STATUS(sand_fit_measure(cube.surface, &desc, pool, &fit, &err), SAND_OK, &err);
		CHECK_STATUS(sand_fit_radius_factor(&desc, 1, pool, &factor, &err), SAND_OK, &err);
		size_t from = offsetof(SandFit, spacing_min);
		CHECK(memcmp((const char *)&fit + from, (const char *)&alone + from, sizeof(fit) - from) == 0);
		CHECK(memcmp(&factor, &factor_alone, sizeof(factor)) == 0);
		sand_pool_destroy(pool);
	}
	spheres_free(&spheres);
	body_free(&cube);
}

static void every_failing_allocation_is_reported(void)
{
	Body cube = unit_cube();
	Spheres spheres = random_spheres(50, 0.1, 0.2);
	SandFitDesc desc = desc_of(&spheres);
	for (int call = 0; call < 2; ++call)
	{
		size_t before = sand_alloc_bytes();
		SandStatus status = SAND_ERROR_MEMORY;
		int countdown = 0;
		while (status != SAND_OK && countdown < 100)
		{
			SandFit fit;
			SandError err = {0};
			double factor;
			sand_alloc_fail_after((uint64_t)++countdown, false);
			status = call == 0 ? sand_fit_measure(cube.surface, &desc, NULL, &fit, &err)
			                   : sand_fit_radius_factor(&desc, 1, NULL, &factor, &err);
			sand_alloc_fail_after(0, false);
			CHECK(status == SAND_OK || (status == SAND_ERROR_MEMORY && err.message[0] != '\0'));
			CHECK_INT(sand_alloc_bytes(), before);
		}
		CHECK(countdown > 8 && countdown < 100);
	}
	spheres_free(&spheres);
	body_free(&cube);
}

void test_fit(void)
{
	RUN(spacing_is_that_of_brute_force);
	RUN(a_close_packed_lattice_is_even);
	RUN(bare_area_is_what_discs_leave);
	RUN(bare_area_does_not_depend_on_the_triangles);
	RUN(distance_is_the_worst_of_both_sides);
	RUN(distance_is_that_of_brute_force);
	RUN(volume_of_two_balls_has_a_closed_form);
	RUN(volume_of_many_balls_is_that_of_brute_force);
	RUN(factor_gives_the_volume_wanted);
	RUN(masses_give_volume_centre_and_inertia_of_a_box);
	RUN(masses_of_a_cross_have_a_closed_form);
	RUN(masses_near_the_limit_are_held_and_the_rest_still_fits);
	RUN(masses_that_cannot_be_are_refused);
	RUN(open_meshes_have_no_volume_to_compare);
	RUN(one_sphere_and_a_heap_in_one_place_are_fine);
	RUN(bad_spheres_are_named);
	RUN(every_thread_count_gives_the_same_bits);
	RUN(every_failing_allocation_is_reported);
}
