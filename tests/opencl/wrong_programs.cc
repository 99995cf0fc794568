// Wrong calls about programs in parts, programs in other languages, and built-in kernels.
#include "codes.hh"

static const char* const source =
    "int f(int v) { return v; }\n__kernel void k(__global int* v) { v[0] = f(1); }\n";

static void CL_CALLBACK never(cl_program, void*) {}

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const machine m;
  cl_device_id device = m.device;
  int data = 0;
  const char* text = source;
  const char* name = "h.h";
  cl_int code = CL_SUCCESS;
  cl_program a = clCreateProgramWithSource(m.context, 1, &text, nullptr, &code);
  CHECK_CL(code);
  CODE(clCompileProgram(nullptr, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr));
  CODE(clCompileProgram(a, 1, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr));
  CODE(clCompileProgram(a, 0, &device, nullptr, 0, nullptr, nullptr, nullptr, nullptr));

  CODE(clCompileProgram(a, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, &data));
  CODE(clCompileProgram(a, 0, nullptr, "-no-such-option", 0, nullptr, nullptr, nullptr, nullptr));
  MAKES(clLinkProgram(nullptr, 0, nullptr, nullptr, 1, &a, nullptr, nullptr, &code));
  MAKES(clLinkProgram(m.context, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, &code));
  MAKES(clLinkProgram(m.context, 0, nullptr, nullptr, 1, nullptr, nullptr, nullptr, &code));
  MAKES(clLinkProgram(m.context, 0, nullptr, nullptr, 0, &a, nullptr, nullptr, &code));
  MAKES(clLinkProgram(m.context, 1, nullptr, nullptr, 1, &a, nullptr, nullptr, &code));
  MAKES(clLinkProgram(m.context, 0, &device, nullptr, 1, &a, nullptr, nullptr, &code));

  MAKES(clLinkProgram(m.context, 0, nullptr, nullptr, 1, &a, nullptr, nullptr, &code));
  CHECK_CL(clCompileProgram(a, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr));
  MAKES(clLinkProgram(m.context, 0, nullptr, "-no-such-option", 1, &a, nullptr, nullptr, &code));
  CODE(clBuildProgram(a, 0, nullptr, nullptr, nullptr, nullptr));
  CODE(clSetProgramReleaseCallback(a, never, nullptr));
  CODE(clSetProgramReleaseCallback(a, nullptr, nullptr));
  CODE(clSetProgramReleaseCallback(nullptr, never, nullptr));
  cl_kernel k = clCreateKernel(a, "k", &code);
  CHECK_CL(code);
  CODE(clCompileProgram(a, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr));
  CHECK_CL(clReleaseKernel(k));

  const unsigned char il[] = {3, 2, 0x23, 7, 0, 0, 1, 0};
  MAKES(clCreateProgramWithIL(m.context, il, sizeof il, &code));
  MAKES(clCreateProgramWithIL(m.context, nullptr, sizeof il, &code));
  MAKES(clCreateProgramWithIL(m.context, il, 0, &code));
  MAKES(clCreateProgramWithIL(nullptr, il, sizeof il, &code));
  CODE(clSetProgramSpecializationConstant(a, 0, 4, il));
  CODE(clSetProgramSpecializationConstant(nullptr, 0, 4, il));
  MAKES(clCreateProgramWithBuiltInKernels(m.context, 1, &device, "no.such", &code));
  MAKES(clCreateProgramWithBuiltInKernels(m.context, 1, &device, nullptr, &code));
  MAKES(clCreateProgramWithBuiltInKernels(m.context, 0, &device, "no.such", &code));
  MAKES(clCreateProgramWithBuiltInKernels(m.context, 1, nullptr, "no.such", &code));
  MAKES(clCreateProgramWithBuiltInKernels(nullptr, 1, &device, "no.such", &code));
  CHECK_CL(clReleaseProgram(a));
}
