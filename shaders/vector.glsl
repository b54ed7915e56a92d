// vector: products of three numbers and turns by quaternions (w, x, y, z as x, y, z, w), in doubles.
// The twins of dot and cross in csrc/collider.c and of sand_turn in csrc/track.c, same bits.
#ifndef SAND_VECTOR_GLSL
#define SAND_VECTOR_GLSL

double product3(dvec3 a, dvec3 b)
{
	precise double sum = a.x * b.x + a.y * b.y + a.z * b.z;
	return sum;
}

dvec3 cross3(dvec3 a, dvec3 b)
{
	precise dvec3 c = dvec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
	return c;
}

// v + 2 w (u x v) + 2 u x (u x v) with q = (w, u).
dvec3 turn_vector(dvec4 q, dvec3 v)
{
	precise dvec3 x =
	    dvec3(2.0lf * (q.z * v.z - q.w * v.y), 2.0lf * (q.w * v.x - q.y * v.z), 2.0lf * (q.y * v.y - q.z * v.x));
	precise dvec3 turned_v = dvec3(v.x + q.x * x.x + q.z * x.z - q.w * x.y, v.y + q.x * x.y + q.w * x.x - q.y * x.z,
	                               v.z + q.x * x.z + q.y * x.y - q.z * x.x);
	return turned_v;
}

dvec3 turn_back(dvec4 q, dvec3 v)
{
	return turn_vector(dvec4(q.x, -q.y, -q.z, -q.w), v);
}
#endif
