// solid: a mesh -> spheres that fill it out, for a solid body.
// Comes in: SandSurface. Goes out: SandPoints and the radius of all.
#include "solid.h"
#include "spread.h"

#include <math.h>
#include <string.h>

static const double GAP = 0.4;   // of the radius: farther than this from every sphere, a place of the surface is bare
static const double DEPTH = 0.5; // of the packing radius: how deep beneath it one more sphere is put

typedef struct Solid
{
	const SandSurface *surface;
	const SandPackingDesc *desc;
	SandPool *pool;
	SandPoints points;
	double radius; // m, of all spheres now
} Solid;

static SandFitDesc fit_of(const Solid *s)
{
	return (SandFitDesc){.centres = s->points.xyz,
	                     .radius = s->desc->radius,
	                     .sphere_count = s->points.count,
	                     .is_filling = true,
	                     .cancel = s->desc->cancel};
}

static SandStatus grow(Solid *s, SandError *err)
{
	SandFitDesc fit = fit_of(s);
	double factor = 1;
	SandStatus status =
	    sand_fit_radius_factor(&fit, fabs(sand_surface_mesh(s->surface)->volume), s->pool, &factor, err);
	s->radius = factor * (double)s->desc->radius;
	return status;
}

// Beneath a place of the surface; false where there is no beneath.
static bool dive(const Solid *s, const float place[3], float centre[3])
{
	SandNearest nearest;
	double at[3] = {place[0], place[1], place[2]};
	if (!sand_surface_nearest(s->surface, at, INFINITY, &nearest))
	{
		return false;
	}
	for (int k = 0; k < 3; ++k)
	{
		at[k] = nearest.point[k] - DEPTH * (double)s->desc->radius * nearest.normal[k];
		centre[k] = (float)at[k];
	}
	return sand_surface_is_inside(s->surface, at);
}

static bool is_near(const float *centres, int count, const float centre[3], double reach)
{
	for (int i = 0; i < count; ++i)
	{
		double square = 0;
		for (int k = 0; k < 3; ++k)
		{
			double d = (double)centres[3 * i + k] - (double)centre[k];
			square += d * d;
		}
		if (square < reach * reach)
		{
			return true;
		}
	}
	return false;
}

// One sphere more for every bare place, but for those that another of them covers already.
static SandStatus fill_gaps(Solid *s, const SandPoints *places, const uint8_t *gaps, SandError *err)
{
	int gap_count = 0;
	for (int i = 0; i < places->count; ++i)
	{
		gap_count += gaps[i];
	}
	size_t capacity = 3 * ((size_t)s->points.count + (size_t)gap_count);
	float *grown = sand_alloc(capacity, sizeof(float));
	if (grown == NULL)
	{
		return sand_fail_memory(err, capacity * sizeof(float), "the spheres of a body");
	}
	int old_count = s->points.count, count = old_count;
	memcpy(grown, s->points.xyz, 3 * (size_t)old_count * sizeof(float));
	for (int i = 0; i < places->count; ++i)
	{
		float *centre = grown + 3 * (size_t)count;
		if (gaps[i] && dive(s, places->xyz + 3 * (size_t)i, centre) &&
		    !is_near(grown + 3 * (size_t)old_count, count - old_count, centre, s->radius))
		{
			++count;
		}
	}
	sand_free(s->points.xyz);
	s->points = (SandPoints){grown, count};
	return SAND_OK;
}

static SandStatus close_gaps(Solid *s, SandError *err)
{
	SandPoints places;
	SandSpreadDesc desc = {.spacing = s->desc->radius, .seed = s->desc->seed, .cancel = s->desc->cancel};
	SandStatus status = sand_spread_points(s->surface, &desc, s->pool, &places, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint8_t *gaps = sand_alloc((size_t)places.count, 1);
	status = gaps == NULL ? sand_fail_memory(err, (size_t)places.count, "the gaps of a body") : SAND_OK;
	SandFitDesc fit = fit_of(s);
	fit.radius = (float)s->radius;
	if (status == SAND_OK)
	{
		status = sand_fit_gaps(&fit, places.xyz, places.count, GAP * s->radius, s->pool, gaps, err);
	}
	if (status == SAND_OK)
	{
		status = fill_gaps(s, &places, gaps, err);
	}
	sand_free(gaps);
	sand_points_free(&places);
	return status;
}

SandStatus sand_solid_fill(const SandSurface *surface, const SandPackingDesc *desc, SandPool *pool,
                           SandPoints *points_out, float *radius_out, SandError *err)
{
	*points_out = (SandPoints){0};
	*radius_out = 0;
	SandStatus status = sand_mesh_require_closed(sand_surface_mesh(surface), err);
	Solid s = {.surface = surface, .desc = desc, .pool = pool};
	if (status == SAND_OK)
	{
		status = sand_packing_fill(surface, desc, pool, &s.points, err);
	}
	int packed_count = s.points.count;
	status = status == SAND_OK ? grow(&s, err) : status;
	status = status == SAND_OK ? close_gaps(&s, err) : status;
	if (status == SAND_OK && s.points.count > packed_count)
	{
		status = grow(&s, err);
	}
	if (status != SAND_OK)
	{
		sand_points_free(&s.points);
		return status;
	}
	*points_out = s.points;
	*radius_out = (float)s.radius;
	return SAND_OK;
}
