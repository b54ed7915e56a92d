// 61_fastest: the fastest of every block of grains, in scenes too large for 10_control alone. In: speeds. Out: behind them,
// the greatest of each block. Groups of 64, one block each; no barrier inside; behind the one after 60_move.
layout(local_size_x = 64) in;
#define READ_SPEEDS
#include "engine.glsl"
layout(std430, binding = SAND_BIND_SPEEDS) writeonly buffer SpeedBlock
{
	double speeds[];
};

void main()
{
	now = control;
	int block = int(sand_thread());
	if (block >= now.speed_count)
	{
		return;
	}
	double most = 0.0lf;
	for (int k = 0; k < SAND_SPEED_BLOCK; ++k)
	{
		// Neighbours read neighbouring places.
		int i = block + k * now.speed_count;
		double value = i < now.grain_count ? packDouble2x32(texelFetch(speed_texels, i).xy) : 0.0lf;
		most = value > most ? value : most;
	}
	speeds[now.speed_first + block] = most;
}
