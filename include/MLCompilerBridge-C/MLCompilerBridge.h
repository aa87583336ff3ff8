//===- MLCompilerBridge.h - The C API -----------------------------*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The C99 API of ML-Compiler-Bridge: this header and libMLCompilerBridge.so.
/// docs/reference/c-api.md introduces it.
/// \code
///   MLBridgeModelRunnerRef Runner;
///   MLBridgeStatus Status =
///       mlbridgeCreateModelRunner("pipe:/tmp/advisor", &Runner);
///   ...
///   MLBridgeFeatureSetRef Features = mlbridgeGetFeatures(Runner);
///   mlbridgeSetInt32(Features, "callee_size", 12);
///   mlbridgeSetFloatVector(Features, "embedding", Embedding, 300);
///   bool ShouldInline;
///   Status = mlbridgeEvaluateBool(Runner, &ShouldInline);
/// \endcode
///
/// **Names.** Types and constants begin with MLBridge, functions with mlbridge.
/// A `...Ref` is a handle. An object that a `Create` makes is destroyed by the
/// `Dispose` of the same name, which accepts null. An object that a `Get`
/// returns belongs to the handle passed to the `Get`.
///
/// **Failures.** A function that can fail returns an MLBridgeStatus. Unless
/// that is Success, the function writes nothing through its pointers, and
/// mlbridgeGetLastErrorMessage() returns a message. A null pointer is an
/// InvalidArgument where a value is required. No function ends the process,
/// throws, or waits without a deadline.
///
/// **Threads.** A handle and its parts are used by one thread at a time;
/// different threads can use different handles. Several threads can make
/// runners with one factory at the same time, once all its schemes have been
/// added.
///
/// **ABI.** Names, numbers and layouts do not change while the number in the
/// library's SONAME stays the same. New functions may be added.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_C_MLCOMPILERBRIDGE_H
#define MLCOMPILERBRIDGE_C_MLCOMPILERBRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLBRIDGE_C_API __attribute__((visibility("default")))

// In C an enum holds any int, even one that has no name in this version. This
// macro gives C++ the same guarantee.
#ifdef __cplusplus
#define MLBRIDGE_C_ENUM : int
#else
#define MLBRIDGE_C_ENUM
#endif

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Evaluates one model: the C++ class MLModelRunner.
typedef struct MLBridgeOpaqueModelRunner *MLBridgeModelRunnerRef;
/// Named tensors to write: a request, an observation, a decision.
typedef struct MLBridgeOpaqueFeatureSet *MLBridgeFeatureSetRef;
/// Named tensors to read: a model's advice, an action, or a request to your own
/// runner.
typedef struct MLBridgeOpaqueAdvice *MLBridgeAdviceRef;
/// A compiler as a reinforcement learning environment.
typedef struct MLBridgeOpaqueEnvironment *MLBridgeEnvironmentRef;
/// Makes runners from specs, by its schemes.
typedef struct MLBridgeOpaqueRunnerFactory *MLBridgeRunnerFactoryRef;

/// The result of a call. mlbridgeGetLastErrorMessage() has the details.
typedef enum MLBridgeStatus MLBRIDGE_C_ENUM {
  MLBridgeStatusSuccess = 0,
  /// The peer did not connect or reply before the deadline.
  MLBridgeStatusTimeout = 1,
  /// The peer's process ended, or the peer closed the channel.
  MLBridgeStatusPeerClosed = 2,
  /// Bytes that do not follow the wire format.
  MLBridgeStatusMalformed = 3,
  /// A name, type or shape differs from the requested one, or the requested
  /// type cannot represent a value.
  MLBridgeStatusSchemaMismatch = 4,
  /// The model itself failed; the message is the model's.
  MLBridgeStatusModel = 5,
  /// This build of the library lacks a feature.
  MLBridgeStatusUnsupported = 6,
  /// The operating system refused, or memory ran out.
  MLBridgeStatusSystem = 7,
  /// An invalid argument: a null pointer, a model spec, a shape.
  MLBridgeStatusInvalidArgument = 8,
  /// Not a failure: the model leaves the decision to the compiler.
  MLBridgeStatusDeferred = 9
} MLBridgeStatus;

/// The type of a tensor's elements.
typedef enum MLBridgeElementType MLBRIDGE_C_ENUM {
  MLBridgeElementInt8 = 0,
  MLBridgeElementInt16 = 1,
  MLBridgeElementInt32 = 2,
  MLBridgeElementInt64 = 3,
  MLBridgeElementUInt8 = 4,
  MLBridgeElementUInt16 = 5,
  MLBridgeElementUInt32 = 6,
  MLBridgeElementUInt64 = 7,
  MLBridgeElementFloat = 8,
  MLBridgeElementDouble = 9,
  /// One byte, 0 or 1: C's bool.
  MLBridgeElementBool = 10,
  /// UTF-8. Rank 0 is a string, rank 1 a list of strings.
  MLBridgeElementString = 11
} MLBridgeElementType;

/// The expected form of the advice, for models that cannot otherwise know the
/// type and number of bytes to send.
typedef enum MLBridgeForm MLBRIDGE_C_ENUM {
  MLBridgeFormAny = 0,
  MLBridgeFormScalar = 1,
  MLBridgeFormVector = 2
} MLBridgeForm;

/// A named tensor in the library's memory: dense, row-major, little-endian.
typedef struct MLBridgeTensor {
  const char *Name;
  MLBridgeElementType Type;
  /// 0 for a scalar, at most 8.
  uint32_t Rank;
  /// Rank numbers, outermost first.
  const int64_t *Extents;
  /// NumElements elements. For strings: their bytes, back to back without NULs.
  const void *Data;
  size_t NumBytes;
  size_t NumElements;
  /// For a list of strings: the number of bytes of each element. Otherwise
  /// null.
  const uint64_t *Lengths;
} MLBridgeTensor;

/// An infinite time-out.
#define MLBRIDGE_FOREVER INT64_MAX

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// The library's version, "0.1.0".
MLBRIDGE_C_API const char *mlbridgeGetVersion(void);

/// "Timeout", "PeerClosed", ...; "unknown error" for any other number.
MLBRIDGE_C_API const char *mlbridgeGetStatusName(MLBridgeStatus Status);

/// The message of this thread's last call that did not succeed, or "" if every
/// call has succeeded; successful calls do not change it. It names the peer,
/// file or feature, what was expected and what was found; for Deferred, the
/// reason. The library owns the text, which is valid until this thread's next
/// call of this function.
MLBRIDGE_C_API const char *mlbridgeGetLastErrorMessage(void);

/// Sets this thread's last error message to \p Message (null: no message) and
/// returns \p Status. For callbacks: `return mlbridgeFail(MLBridgeStatusModel,
/// "...")`.
MLBRIDGE_C_API MLBridgeStatus mlbridgeFail(MLBridgeStatus Status,
                                           const char *Message);

//===----------------------------------------------------------------------===//
// Features: named tensors to write
//===----------------------------------------------------------------------===//
// Setting an existing name replaces its value. If the caller ignores a failed
// status, the request with these features fails with the same error.

/// Sets \p Name to a scalar of any \p Type except String. The value is copied.
/// In C prefer the typed functions below: mlbridgeSetInt32(Features, "size",
/// 12).
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetScalar(MLBridgeFeatureSetRef Features,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                const void *Value);

/// Sets \p Name to a tensor of any \p Type except String, with \p Rank (at most
/// 8) \p Extents. \p Data is copied.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetTensor(
    MLBridgeFeatureSetRef Features, const char *Name, MLBridgeElementType Type,
    const void *Data, const int64_t *Extents, size_t Rank);

/// The same without a copy. \p Data must stay unchanged: for a request, until
/// its reply; for an observation, until the next call of its environment; for
/// advice, until the next call of its runner.
MLBRIDGE_C_API MLBridgeStatus mlbridgeBorrowTensor(
    MLBridgeFeatureSetRef Features, const char *Name, MLBridgeElementType Type,
    const void *Data, const int64_t *Extents, size_t Rank);

/// Sets \p Name to a copy of a UTF-8 string.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetString(MLBridgeFeatureSetRef Features,
                                                const char *Name,
                                                const char *Text);

/// The same for a string without a terminating NUL or with embedded NULs.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetStringWithLength(MLBridgeFeatureSetRef Features, const char *Name,
                            const char *Text, size_t Length);

/// Sets \p Name to a list of \p Count strings, which are copied. \p Lengths has
/// their lengths; null if each ends with a NUL.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetStringVector(
    MLBridgeFeatureSetRef Features, const char *Name, const char *const *Texts,
    const size_t *Lengths, size_t Count);

/// Sets \p Name to a copy of the tensor \p FromName of \p From (null: its only
/// tensor, or the one named "out"), of any type.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCopyTensor(MLBridgeFeatureSetRef Features,
                                                 const char *Name,
                                                 MLBridgeAdviceRef From,
                                                 const char *FromName);

/// Removes all features. Evaluating does this automatically.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeClearFeatures(MLBridgeFeatureSetRef Features);

//===----------------------------------------------------------------------===//
// Advice: named tensors to read
//===----------------------------------------------------------------------===//
// A null Name selects the only tensor, or the one named "out". Conversions
// preserve the value: an int64 5 converts to int32, 300 does not fit int8, 1.0
// converts to int, 0.5 does not. Only double to float may round. Everything
// else is a SchemaMismatch.
//
// Returned pointers are valid as long as the advice: a runner's advice until
// the runner's next request, a callback's until the callback returns.

/// The number of tensors; 0 for null.
MLBRIDGE_C_API size_t mlbridgeGetNumTensors(MLBridgeAdviceRef Advice);

/// Writes a description of the tensor at \p Index to \p Tensor.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTensorAt(MLBridgeAdviceRef Advice,
                                                  size_t Index,
                                                  MLBridgeTensor *Tensor);

/// Writes a description of the tensor \p Name to \p Tensor. Its Data is not
/// copied. It is aligned to its type unless a peer with another library sent
/// it.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTensor(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeTensor *Tensor);

/// Writes the only element of \p Name to \p Value, converted to \p Type, which
/// must not be String.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetScalar(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                void *Value);

/// Points \p Values at the \p Count elements of \p Name, converted to \p Type,
/// which must not be String. Elements of that type are not copied; others are
/// converted to a copy that the advice owns.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetVector(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                const void **Values,
                                                size_t *Count);

/// Points \p Text at the string \p Name, which ends with a NUL. \p Length,
/// which may be null, receives the length without that NUL.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetString(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                const char **Text,
                                                size_t *Length);

/// Points \p Texts at the \p Count strings of \p Name, each of which ends with
/// a NUL. A single string counts as a list of one. MLBridgeTensor has the
/// lengths.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetStringVector(MLBridgeAdviceRef Advice,
                                                      const char *Name,
                                                      const char *const **Texts,
                                                      size_t *Count);

//===----------------------------------------------------------------------===//
// Model runners
//===----------------------------------------------------------------------===//

/// Makes the runner for \p Spec, such as `pipe:/tmp/advisor` or
/// `record:x.log|onnx:policy.onnx` (docs/reference/model-specs.md). The first
/// request connects or loads the model. Each runner made here loads its own
/// copy of a model in this process; runners of one factory share it.
/// Unsupported if this installation lacks the component of a scheme.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateModelRunner(const char *Spec, MLBridgeModelRunnerRef *Runner);

/// The same for `SCHEME:PATH?OPTIONS` in parts. \p Path is not percent-encoded.
/// \p Options may be null; example: "serdes=json&timeout=5s". The scheme
/// defines the meaning of a path: for models in this process, "a=x.onnx" is the
/// file x.onnx with the label a, but "./a=x.onnx", with a slash before the
/// first "=", is a file.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCreateModelRunnerAt(
    const char *Scheme, const char *Path, const char *Options,
    MLBridgeModelRunnerRef *Runner);

/// Checks the text of \p Spec as mlbridgeCreateModelRunner() would, for a
/// command line. Makes no runner, opens no model and connects to nothing, but
/// loads the module of a scheme that is not built in, with the libraries that
/// the module links.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCheckModelSpec(const char *Spec);

/// Writes buffered data, such as the log of `record:`.
/// mlbridgeDisposeModelRunner() does so too, but can only print a failure: call
/// this first to receive it.
MLBRIDGE_C_API MLBridgeStatus mlbridgeFlush(MLBridgeModelRunnerRef Runner);

MLBRIDGE_C_API void mlbridgeDisposeModelRunner(MLBridgeModelRunnerRef Runner);

/// The features of the next request. The same handle for the runner's lifetime.
/// Null if \p Runner is null; all functions on features refuse a null handle.
MLBRIDGE_C_API MLBridgeFeatureSetRef
mlbridgeGetFeatures(MLBridgeModelRunnerRef Runner);

/// Sends the features to the model, then clears them, even if the call fails or
/// an argument is invalid. \p Advice holds the whole reply and belongs to the
/// runner. Deferred: the model leaves the decision to the compiler.
MLBRIDGE_C_API MLBridgeStatus mlbridgeEvaluate(MLBridgeModelRunnerRef Runner,
                                               MLBridgeAdviceRef *Advice);

/// The same, and tells the model that one scalar or vector of \p Type is
/// expected. This is only a hint: reading the advice converts it. In C prefer
/// the typed functions below: mlbridgeEvaluateBool(Runner, &Reply).
MLBRIDGE_C_API MLBridgeStatus mlbridgeEvaluateAs(MLBridgeModelRunnerRef Runner,
                                                 MLBridgeForm Form,
                                                 MLBridgeElementType Type,
                                                 MLBridgeAdviceRef *Advice);

/// The time limit of one evaluation in nanoseconds, or MLBRIDGE_FOREVER.
/// Default: the spec's `timeout`, or else 30 s.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetTimeout(MLBridgeModelRunnerRef Runner,
                                                 int64_t Nanoseconds);
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTimeout(MLBridgeModelRunnerRef Runner,
                                                 int64_t *Nanoseconds);

/// The compiler's final decision: set one feature here before
/// mlbridgeLogOutcome(). Null if \p Runner is null.
MLBRIDGE_C_API MLBridgeFeatureSetRef
mlbridgeGetDecision(MLBridgeModelRunnerRef Runner);

/// Tells the runner the decision on the last request and, unless \p Reward is
/// null, its reward. The decision is the feature set in mlbridgeGetDecision(),
/// or else the model's advice. Runners that learn or record use the outcome;
/// others ignore it.
MLBRIDGE_C_API MLBridgeStatus mlbridgeLogOutcome(MLBridgeModelRunnerRef Runner,
                                                 const double *Reward);

/// Names the subject of the next requests (a module, a function), for logs.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSwitchContext(MLBridgeModelRunnerRef Runner, const char *Name);

/// Describes the runner and its peer for messages: "pipe:/tmp/advisor
/// (bitstream)". Valid until the next call for this runner.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeDescribeModelRunner(MLBridgeModelRunnerRef Runner, const char **Text);

//===----------------------------------------------------------------------===//
// Factories: your own schemes
//===----------------------------------------------------------------------===//

/// A runner written in C.
typedef struct MLBridgeRunnerCallbacks {
  /// sizeof(MLBridgeRunnerCallbacks): later versions may have more members.
  size_t Size;
  /// Opens \p Path and stores the result in \p Runner, which the other
  /// functions receive. \p User comes from mlbridgeAddScheme(). If null, the
  /// scheme accepts no path and the other functions receive \p User.
  MLBridgeStatus (*Create)(void *User, const char *Path, void **Runner);
  /// Evaluates \p Request and sets the advice in \p Reply, within \p
  /// Nanoseconds (or MLBRIDGE_FOREVER).
  MLBridgeStatus (*Evaluate)(void *Runner, MLBridgeAdviceRef Request,
                             int64_t Nanoseconds, MLBridgeFeatureSetRef Reply);
  /// Destroys what Create returned; may be null.
  void (*Dispose)(void *Runner);
} MLBridgeRunnerCallbacks;

/// Makes a factory with the schemes of mlbridgeCreateModelRunner(). All its
/// runners in all threads share one copy of a model in this process, and reload
/// the model after its file has changed. Any number of threads can make runners
/// and check specs at the same time while no thread adds a scheme or sets a
/// time-out.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateRunnerFactory(MLBridgeRunnerFactoryRef *Factory);

/// Destroys \p Factory. Its runners remain valid.
MLBRIDGE_C_API void
mlbridgeDisposeRunnerFactory(MLBridgeRunnerFactoryRef Factory);

/// Adds the scheme \p Name, or replaces the scheme of that name. \p Help, a
/// line for your --help, may be null. \p Callbacks is copied. \p User must
/// outlive the factory and its runners. If several threads make runners, they
/// may call Create at the same time.
MLBRIDGE_C_API MLBridgeStatus mlbridgeAddScheme(
    MLBridgeRunnerFactoryRef Factory, const char *Name, const char *Help,
    const MLBridgeRunnerCallbacks *Callbacks, void *User);

/// The number of schemes; 0 for null. Schemes from modules, such as `grpc`, are
/// not included: a module is loaded when a spec names it.
MLBRIDGE_C_API size_t mlbridgeGetNumSchemes(MLBridgeRunnerFactoryRef Factory);

/// Gets the name and the help line of the scheme at \p Index. Either pointer
/// may be null. Valid until a scheme is added.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetSchemeAt(MLBridgeRunnerFactoryRef Factory, size_t Index,
                    const char **Name, const char **Help);

/// Sets how long runners wait for their models to appear if the spec lacks
/// `connect`: nanoseconds, or MLBRIDGE_FOREVER. Default: 30 s.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetConnectTimeout(
    MLBridgeRunnerFactoryRef Factory, int64_t Nanoseconds);

/// mlbridgeCreateModelRunner() with the schemes of \p Factory.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCreateModelRunnerWithFactory(
    MLBridgeRunnerFactoryRef Factory, const char *Spec,
    MLBridgeModelRunnerRef *Runner);

/// mlbridgeCheckModelSpec() with the schemes of \p Factory.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCheckModelSpecWithFactory(
    MLBridgeRunnerFactoryRef Factory, const char *Spec);

//===----------------------------------------------------------------------===//
// Environments: a compiler as a reinforcement learning environment
//===----------------------------------------------------------------------===//

/// The functions of an environment. Each receives the \p User of
/// mlbridgeCreateEnvironment(). Any status except Success ends the episode; the
/// trainer receives the message of mlbridgeFail() or of the failed call.
typedef struct MLBridgeEnvironmentCallbacks {
  /// sizeof(MLBridgeEnvironmentCallbacks).
  size_t Size;
  /// Starts an episode and sets its first observation.
  MLBridgeStatus (*Reset)(void *User, MLBridgeEnvironmentRef Environment,
                          MLBridgeFeatureSetRef Observation);
  /// Applies \p Action and sets the next observation. Call mlbridgeSetDone() at
  /// the end of the episode.
  MLBridgeStatus (*Step)(void *User, MLBridgeEnvironmentRef Environment,
                         MLBridgeAdviceRef Action,
                         MLBridgeFeatureSetRef Observation);
  /// Returns the reward of the last step. If null, rewards are 0.
  double (*Reward)(void *User);
} MLBridgeEnvironmentCallbacks;

/// Makes an environment. \p Callbacks is copied; \p User must outlive the
/// environment.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateEnvironment(const MLBridgeEnvironmentCallbacks *Callbacks,
                          void *User, MLBridgeEnvironmentRef *Environment);

/// Destroys an environment that is not in use.
MLBRIDGE_C_API void
mlbridgeDisposeEnvironment(MLBridgeEnvironmentRef Environment);

/// Marks the episode as terminated: it reached its own end.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetDone(MLBridgeEnvironmentRef Environment);
/// Marks the episode as truncated by a limit outside the task, such as a
/// maximum number of steps.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetTruncated(MLBridgeEnvironmentRef Environment);
/// True if the episode is over, for either reason; false for null.
MLBRIDGE_C_API bool mlbridgeCheckDone(MLBridgeEnvironmentRef Environment);

/// The label of the agent that the observation is for; "" if there is only one
/// agent. Valid until the label is set again.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetNextAgent(MLBridgeEnvironmentRef Environment, const char *Label);
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetNextAgent(MLBridgeEnvironmentRef Environment, const char **Label);

/// Sets additional information about the observation, as a JSON object: for
/// logs, not for learning.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetInfo(MLBridgeEnvironmentRef Environment, const char *JSON);

/// Gets the seed for this episode's random numbers. If the caller gave none, \p
/// HasSeed is false and \p Seed does not change.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetSeed(
    MLBridgeEnvironmentRef Environment, bool *HasSeed, int64_t *Seed);
/// Gets the caller's other options for this episode: a JSON object, or "".
/// Valid until the episode is over.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetOptions(MLBridgeEnvironmentRef Environment, const char **JSON);

/// The runner that acts for the agent \p Label. A null Label stands for all
/// agents; if the environment names the next agent, the runner gets its label
/// as the feature `_agent`.
typedef struct MLBridgeAgent {
  const char *Label;
  MLBridgeModelRunnerRef Runner;
} MLBridgeAgent;

/// Runs one episode in this process: reset, then one step by the agent whose
/// turn it is, until the environment is done. More than \p MaxSteps steps are a
/// Timeout. \p Return, which may be null, receives the sum of the rewards.
MLBRIDGE_C_API MLBridgeStatus mlbridgeRunEpisode(
    MLBridgeEnvironmentRef Environment, const MLBridgeAgent *Agents,
    size_t NumAgents, size_t MaxSteps, double *Return);

/// The training direction, in which the model sends requests. Connects to the
/// trainer that \p Spec names (`pipe:NAME`, `shm:NAME`, `grpc://HOST:PORT`;
/// docs/guides/training.md) and executes its commands. Returns Success when the
/// trainer closes, disconnects or dies. The trainer sets the spec in
/// MLBRIDGE_SPEC. If \p Spec is null, the InvalidArgument says how to start
/// such a program.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeServeEnvironment(MLBridgeEnvironmentRef Environment, const char *Spec);

//===----------------------------------------------------------------------===//
// The functions above for each C type
//===----------------------------------------------------------------------===//

/// The functions for Int32 and int32_t. Int8, Int16, Int64, UInt8, UInt16,
/// UInt32, UInt64, Float, Double and Bool have the same:
/// \code
///   mlbridgeSetInt32(Features, Name, int32_t Value)               copies
///   mlbridgeSetInt32Vector(Features, Name, const int32_t *Values,
///                          size_t Count)                          copies
///   mlbridgeBorrowInt32Vector(the same)                           borrows
///   mlbridgeGetInt32(Advice, Name, int32_t *Value)
///   mlbridgeGetInt32Vector(Advice, Name, const int32_t **Values,
///                          size_t *Count)
///   mlbridgeEvaluateInt32(Runner, int32_t *Value)
///   mlbridgeEvaluateInt32Vector(Runner, const int32_t **Values,
///                               size_t *Count)
/// \endcode
/// They are inline, so that the ABI has one function instead of eleven.
#define MLBRIDGE_FUNCTIONS_OF(NAME, TYPE)                                      \
  static inline MLBridgeStatus mlbridgeSet##NAME(                              \
      MLBridgeFeatureSetRef Features, const char *Name, TYPE Value) {          \
    return mlbridgeSetScalar(Features, Name, MLBridgeElement##NAME, &Value);   \
  }                                                                            \
  static inline MLBridgeStatus mlbridgeSet##NAME##Vector(                      \
      MLBridgeFeatureSetRef Features, const char *Name, const TYPE *Values,    \
      size_t Count) {                                                          \
    int64_t Extent = (int64_t)Count;                                           \
    return mlbridgeSetTensor(Features, Name, MLBridgeElement##NAME, Values,    \
                             &Extent, 1);                                      \
  }                                                                            \
  static inline MLBridgeStatus mlbridgeBorrow##NAME##Vector(                   \
      MLBridgeFeatureSetRef Features, const char *Name, const TYPE *Values,    \
      size_t Count) {                                                          \
    int64_t Extent = (int64_t)Count;                                           \
    return mlbridgeBorrowTensor(Features, Name, MLBridgeElement##NAME, Values, \
                                &Extent, 1);                                   \
  }                                                                            \
  static inline MLBridgeStatus mlbridgeGet##NAME(                              \
      MLBridgeAdviceRef Advice, const char *Name, TYPE *Value) {               \
    return mlbridgeGetScalar(Advice, Name, MLBridgeElement##NAME, Value);      \
  }                                                                            \
  static inline MLBridgeStatus mlbridgeGet##NAME##Vector(                      \
      MLBridgeAdviceRef Advice, const char *Name, const TYPE **Values,         \
      size_t *Count) {                                                         \
    const void *Found = NULL;                                                  \
    MLBridgeStatus Status =                                                    \
        mlbridgeGetVector(Advice, Name, MLBridgeElement##NAME,                 \
                          Values ? &Found : (const void **)NULL, Count);       \
    if (Status == MLBridgeStatusSuccess)                                       \
      *Values = (const TYPE *)Found;                                           \
    return Status;                                                             \
  }                                                                            \
  static inline MLBridgeStatus mlbridgeEvaluate##NAME(                         \
      MLBridgeModelRunnerRef Runner, TYPE *Value) {                            \
    MLBridgeAdviceRef Advice = NULL;                                           \
    MLBridgeStatus Status =                                                    \
        mlbridgeEvaluateAs(Runner, MLBridgeFormScalar, MLBridgeElement##NAME,  \
                           Value ? &Advice : (MLBridgeAdviceRef *)NULL);       \
    if (Status != MLBridgeStatusSuccess)                                       \
      return Value ? Status : mlbridgeFail(Status, "'Value' is null");         \
    return mlbridgeGet##NAME(Advice, NULL, Value);                             \
  }                                                                            \
  static inline MLBridgeStatus mlbridgeEvaluate##NAME##Vector(                 \
      MLBridgeModelRunnerRef Runner, const TYPE **Values, size_t *Count) {     \
    MLBridgeAdviceRef Advice = NULL;                                           \
    MLBridgeStatus Status = mlbridgeEvaluateAs(                                \
        Runner, MLBridgeFormVector, MLBridgeElement##NAME,                     \
        Values && Count ? &Advice : (MLBridgeAdviceRef *)NULL);                \
    if (Status != MLBridgeStatusSuccess)                                       \
      return Values && Count                                                   \
                 ? Status                                                      \
                 : mlbridgeFail(Status, "'Values' or 'Count' is null");        \
    return mlbridgeGet##NAME##Vector(Advice, NULL, Values, Count);             \
  }

MLBRIDGE_FUNCTIONS_OF(Int8, int8_t)
MLBRIDGE_FUNCTIONS_OF(Int16, int16_t)
MLBRIDGE_FUNCTIONS_OF(Int32, int32_t)
MLBRIDGE_FUNCTIONS_OF(Int64, int64_t)
MLBRIDGE_FUNCTIONS_OF(UInt8, uint8_t)
MLBRIDGE_FUNCTIONS_OF(UInt16, uint16_t)
MLBRIDGE_FUNCTIONS_OF(UInt32, uint32_t)
MLBRIDGE_FUNCTIONS_OF(UInt64, uint64_t)
MLBRIDGE_FUNCTIONS_OF(Float, float)
MLBRIDGE_FUNCTIONS_OF(Double, double)
MLBRIDGE_FUNCTIONS_OF(Bool, bool)

#undef MLBRIDGE_FUNCTIONS_OF

/// Evaluates to a string: see mlbridgeGetString().
static inline MLBridgeStatus
mlbridgeEvaluateString(MLBridgeModelRunnerRef Runner, const char **Text,
                       size_t *Length) {
  MLBridgeAdviceRef Advice = NULL;
  MLBridgeStatus Status =
      mlbridgeEvaluateAs(Runner, MLBridgeFormScalar, MLBridgeElementString,
                         Text ? &Advice : (MLBridgeAdviceRef *)NULL);
  if (Status != MLBridgeStatusSuccess)
    return Text ? Status : mlbridgeFail(Status, "'Text' is null");
  return mlbridgeGetString(Advice, NULL, Text, Length);
}

/// Evaluates to a list of strings: see mlbridgeGetStringVector().
static inline MLBridgeStatus
mlbridgeEvaluateStringVector(MLBridgeModelRunnerRef Runner,
                             const char *const **Texts, size_t *Count) {
  MLBridgeAdviceRef Advice = NULL;
  MLBridgeStatus Status =
      mlbridgeEvaluateAs(Runner, MLBridgeFormVector, MLBridgeElementString,
                         Texts && Count ? &Advice : (MLBridgeAdviceRef *)NULL);
  if (Status != MLBridgeStatusSuccess)
    return Texts && Count ? Status
                          : mlbridgeFail(Status, "'Texts' or 'Count' is null");
  return mlbridgeGetStringVector(Advice, NULL, Texts, Count);
}

#ifdef __cplusplus
} // extern "C"
#endif

#endif // MLCOMPILERBRIDGE_C_MLCOMPILERBRIDGE_H
