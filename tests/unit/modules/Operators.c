//===- Operators.c - A custom operator of ONNX Runtime --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The custom operator Triple of the domain "test", which multiplies a float by
/// three. ONNXSessionTest loads this library with `?ops=`.
///
//===----------------------------------------------------------------------===//

#include <onnxruntime_c_api.h>

#include <stddef.h>

static const OrtApi *API;

static void *createKernel(const OrtCustomOp *Op, const OrtApi *TheAPI,
                          const OrtKernelInfo *Info) {
  (void)Op, (void)TheAPI, (void)Info;
  // This kernel needs no state, but its pointer must not be null.
  return (void *)&API;
}

static const char *name(const OrtCustomOp *Op) {
  (void)Op;
  return "Triple";
}

static const char *provider(const OrtCustomOp *Op) {
  (void)Op;
  return NULL;
}

static ONNXTensorElementDataType type(const OrtCustomOp *Op, size_t I) {
  (void)Op, (void)I;
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

static size_t one(const OrtCustomOp *Op) {
  (void)Op;
  return 1;
}

static OrtCustomOpInputOutputCharacteristic required(const OrtCustomOp *Op,
                                                     size_t I) {
  (void)Op, (void)I;
  return INPUT_OUTPUT_REQUIRED;
}

static OrtMemType memory(const OrtCustomOp *Op, size_t I) {
  (void)Op, (void)I;
  return OrtMemTypeDefault;
}

static int arity(const OrtCustomOp *Op) {
  (void)Op;
  return 1;
}

/// Computes the product. If a call fails, leaves the output empty.
static void compute(void *Kernel, OrtKernelContext *Context) {
  (void)Kernel;
  const OrtValue *In = NULL;
  OrtValue *Out = NULL;
  void *From = NULL, *To = NULL;
  if (API->KernelContext_GetInput(Context, 0, &In) ||
      API->KernelContext_GetOutput(Context, 0, NULL, 0, &Out) ||
      API->GetTensorMutableData((OrtValue *)In, &From) ||
      API->GetTensorMutableData(Out, &To))
    return;
  *(float *)To = 3 * *(const float *)From;
}

static void destroy(void *Kernel) { (void)Kernel; }

static OrtCustomOp Triple = {
    .version = 15, // ONNX Runtime then does not use later members.
    .CreateKernel = createKernel,
    .GetName = name,
    .GetExecutionProviderType = provider,
    .GetInputType = type,
    .GetInputTypeCount = one,
    .GetOutputType = type,
    .GetOutputTypeCount = one,
    .KernelCompute = compute,
    .KernelDestroy = destroy,
    .GetInputCharacteristic = required,
    .GetOutputCharacteristic = required,
    .GetInputMemoryType = memory,
    .GetVariadicInputMinArity = arity,
    .GetVariadicInputHomogeneity = arity,
    .GetVariadicOutputMinArity = arity,
    .GetVariadicOutputHomogeneity = arity,
};

/// A session uses the domain until the session ends. Therefore, the domain is
/// released only when this library is unloaded.
static OrtCustomOpDomain *Domain;

__attribute__((destructor)) static void release(void) {
  if (Domain)
    API->ReleaseCustomOpDomain(Domain);
}

// ONNX Runtime looks for this name.
__attribute__((visibility("default"))) OrtStatus *
RegisterCustomOps(OrtSessionOptions *Options, const OrtApiBase *Base) {
  API = Base->GetApi(15);
  if (!Domain) {
    OrtStatus *Failed = API->CreateCustomOpDomain("test", &Domain);
    if (!Failed)
      Failed = API->CustomOpDomain_Add(Domain, &Triple);
    if (Failed)
      return Failed;
  }
  return API->AddCustomOpDomain(Options, Domain);
}
