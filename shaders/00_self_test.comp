// 00_self_test: a device computes whole numbers and floats as the processor does.
// In: location 0, the count. Out: binding 0, two words per invocation: a mixed number, and the bits of a float.
// Groups of 64: any device takes them. No barrier inside; the caller sets one before it reads.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint count;
layout(std430, binding = 0) writeonly buffer Words
{
	uint words[];
};

void main()
{
	uint i = sand_thread();
	if (i >= count)
	{
		return;
	}
	uint mixed = (i ^ (i >> 15)) * 0x2c1b3c6du;
	mixed = (mixed ^ (mixed >> 12)) * 0x297a2d39u;
	words[2u * i] = mixed ^ (mixed >> 15);
	precise float value = float(i) * 0.25 + 1.0; // exact below 2^22, so that every device must give these bits
	words[2u * i + 1u] = floatBitsToUint(value);
}
