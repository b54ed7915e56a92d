// sums: the forces on one sphere, added in the order of csrc/kernel.c, which 44_entries has written down: those of its own
// chunk, of obstacles and meshes, then, chunk by chunk, what others have summed for it apart.
// Needs READ_ADDENDS and READ_FORCES. A sum begins as plus zero and so is never minus zero: records of zeros change nothing.

void sphere_sums(int s, out vec3 force_out, out vec3 torque_out)
{
	int first = int(texelFetch(entry_first_texels, s).x), end = int(texelFetch(entry_first_texels, s + 1).x);
	precise vec3 force = vec3(0.0), torque = vec3(0.0), part_force = vec3(0.0), part_torque = vec3(0.0);
	for (int k = first; k < end; ++k)
	{
		uint entry = texelFetch(addend_texels, k).x;
		int row = FORCE_ROWS * int(entry >> 2);
		vec4 f = uintBitsToFloat(texelFetch(force_texels, row)), m = uintBitsToFloat(texelFetch(force_texels, row + 1));
		bool is_back = (entry & SAND_ENTRY_BACK) != 0u, is_apart = (entry & SAND_ENTRY_APART) != 0u;
		precise vec3 done_force = is_apart ? part_force : vec3(0.0), done_torque = is_apart ? part_torque : vec3(0.0);
		force = force + done_force;
		torque = torque + done_torque;
		part_force = is_apart ? vec3(0.0) : part_force;
		part_torque = is_apart ? vec3(0.0) : part_torque;
		precise vec3 own = is_back ? -f.xyz : f.xyz, turn = (is_back ? m.w : f.w) * m.xyz;
#ifndef NO_ROLLING
		vec3 couple = uintBitsToFloat(texelFetch(force_texels, row + 2).xyz);
		turn = is_back ? turn + couple : turn - couple;
#endif
		part_force = part_force + own;
		part_torque = part_torque - turn;
	}
	force = force + part_force;
	torque = torque + part_torque;
	force_out = force;
	torque_out = torque;
}
