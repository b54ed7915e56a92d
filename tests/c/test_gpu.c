// Tests of gpu: the device's thread, its objects, its limits, its failures. Run on the software device, so that they
// run everywhere alike.
#include "gpu.h"
#include "test.h"

static SandStatus self_test_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	return sand_gpu_self_test(gpu, err);
}

static void device_computes_what_the_processor_does(void)
{
	SandError err = {0};
	SandGpu *gpu = NULL;
	if (!CHECK_STATUS(sand_gpu_create(NULL, &gpu, &err), SAND_OK, &err))
	{
		return;
	}
	CHECK_STATUS(sand_gpu_run(gpu, self_test_job, NULL, &err), SAND_OK, &err);
	CHECK_INT(sand_gpu_error_count(gpu), 0);
	CHECK_INT(sand_gpu_counts(gpu).bytes, 0);
	sand_gpu_destroy(gpu);
}

void test_gpu(void)
{
	RUN(device_computes_what_the_processor_does);
}
