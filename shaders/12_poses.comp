// 12_poses: where every collider is at the time of the step; the twin of sand_collider_set_time in csrc/collider.c.
// In: the time, tables of tracks and frames. Out: poses. Groups of 64, one collider each; no barrier inside. Forces of
// colliders come behind a barrier.
layout(local_size_x = 64) in;
#include "engine.glsl"
#include "track.glsl"
layout(std430, binding = SAND_BIND_MESHES) readonly buffer MeshBlock
{
	SandGlCollider meshes[];
};
layout(std430, binding = SAND_BIND_POSES) buffer PoseBlock
{
	SandGlPose poses[];
};

void main()
{
	int c = int(sand_thread());
	if (control.halt != SAND_HALT_NONE || c >= control.collider_count)
	{
		return;
	}
	if (meshes[c].track >= 0)
	{
		Pose pose = track_pose(meshes[c].track, control.time);
		for (int k = 0; k < 3; ++k)
		{
			poses[c].position[k] = pose.position[k];
			poses[c].velocity[k] = pose.velocity[k];
			poses[c].spin[k] = pose.spin[k];
		}
		for (int k = 0; k < 4; ++k)
		{
			poses[c].orientation[k] = pose.orientation[k];
		}
	}
	if (meshes[c].frames >= 0)
	{
		Moment moment = track_moment(meshes[c].frames, control.time);
		int stride = 3 * meshes[c].vertex_count, here = meshes[c].vertices + stride * moment.index;
		poses[c].share = moment.share;
		poses[c].here = here;
		poses[c].next = moment.is_moving ? here + stride : here;
		poses[c].is_moving = moment.is_moving ? 1 : 0;
	}
}
