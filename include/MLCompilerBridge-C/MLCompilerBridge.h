//===- MLCompilerBridge.h - The C API ----------------------------*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All of ML-Compiler-Bridge for a tool that is written in C99: this header,
/// and libMLCompilerBridge.so. docs/c-api.md introduces it.
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
/// A `...Ref` is a handle. What was made by a `Create` is ended by the
/// `Dispose` of the same name, which takes null as well; what came from a `Get`
/// belongs to what it was got from.
///
/// **Failures.** A function that can fail returns an MLBridgeStatus, and leaves
/// what its pointers point at as it was when that is not Success;
/// mlbridgeGetLastErrorMessage() has the sentence to it. A null where
/// something is needed is an InvalidArgument. Nothing here ends the process,
/// throws, or waits without a deadline.
///
/// **Threads.** A handle, and what belongs to it, is used by one thread at a
/// time; different handles by different threads. One factory makes runners for
/// several threads at a time, once it has all of its schemes.
///
/// **ABI.** Names, numbers and layouts stay as they are while the number in
/// the library's SONAME does. New functions may be added.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_C_MLCOMPILERBRIDGE_H
#define MLCOMPILERBRIDGE_C_MLCOMPILERBRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLBRIDGE_C_API __attribute__((visibility("default")))

// In C an enum holds any int, also one that this version has no name for; with
// this it does so in C++.
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

/// Asks one model: the C++ class MLModelRunner.
typedef struct MLBridgeOpaqueModelRunner *MLBridgeModelRunnerRef;
/// Named tensors to be written: a request, an observation, a decision.
typedef struct MLBridgeOpaqueFeatureSet *MLBridgeFeatureSetRef;
/// Named tensors to be read: a model's answer, an action, or the request that
/// a runner of yours is asked.
typedef struct MLBridgeOpaqueAdvice *MLBridgeAdviceRef;
/// A compiler as reinforcement learning sees it.
typedef struct MLBridgeOpaqueEnvironment *MLBridgeEnvironmentRef;
/// Makes runners from specs, by the schemes that it knows.
typedef struct MLBridgeOpaqueRunnerFactory *MLBridgeRunnerFactoryRef;

/// What came of a call; the sentence to it says the rest.
typedef enum MLBridgeStatus MLBRIDGE_C_ENUM {
  MLBridgeStatusSuccess = 0,
  /// The peer did not answer, or was not there, before the deadline.
  MLBridgeStatusTimeout = 1,
  /// The peer's process ended, or it closed the channel.
  MLBridgeStatusPeerClosed = 2,
  /// Bytes that do not follow the wire format.
  MLBridgeStatusMalformed = 3,
  /// A name, type or shape differs from what was asked for, or a value cannot
  /// be represented in the type that was asked for.
  MLBridgeStatusSchemaMismatch = 4,
  /// The model itself failed; the message is its own.
  MLBridgeStatusModel = 5,
  /// A feature that this build of the library does not have.
  MLBridgeStatusUnsupported = 6,
  /// The operating system said no, or memory ran out.
  MLBridgeStatusSystem = 7,
  /// A wrong argument: a null pointer, a model spec, a shape.
  MLBridgeStatusInvalidArgument = 8,
  /// Not a failure: the model leaves the decision to the compiler.
  MLBridgeStatusDeferred = 9
} MLBridgeStatus;

/// What one element of a tensor is.
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

/// What the answer to a request is to be, for models that cannot tell by
/// themselves how many bytes of which type are wanted.
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
  /// NumElements elements. Of strings: their bytes, one after another, with no
  /// NUL between them.
  const void *Data;
  size_t NumBytes;
  size_t NumElements;
  /// For a list of strings: the bytes of each of its NumElements. Else null.
  const uint64_t *Lengths;
} MLBridgeTensor;

/// A time-out that never comes.
#define MLBRIDGE_FOREVER INT64_MAX

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// The library's version, "0.1.0".
MLBRIDGE_C_API const char *mlbridgeGetVersion(void);

/// "Timeout", "PeerClosed", ...; "unknown error" for a number that is none.
MLBRIDGE_C_API const char *mlbridgeGetStatusName(MLBridgeStatus Status);

/// One sentence about the last call on this thread that did not succeed, or ""
/// where all did; a success leaves it as it is. It names the peer, file or
/// feature, what was expected and what was found; for Deferred, why. The
/// library's; valid until this thread calls it again.
MLBRIDGE_C_API const char *mlbridgeGetLastErrorMessage(void);

/// Makes \p Message (null: none) this thread's last error message, and returns
/// \p Status: for callbacks, `return mlbridgeFail(MLBridgeStatusModel, "...")`.
MLBRIDGE_C_API MLBridgeStatus mlbridgeFail(MLBridgeStatus Status,
                                           const char *Message);

//===----------------------------------------------------------------------===//
// Features: named tensors to be written
//===----------------------------------------------------------------------===//
// A name that is there already gets the new value. A failure, if nobody looks
// at the status, is also that of the request that these features are for.

/// Sets \p Name to a scalar of \p Type, any but String, that is copied. In C
/// use the typed ones below: mlbridgeSetInt32(Features, "size", 12).
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetScalar(MLBridgeFeatureSetRef Features,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                const void *Value);

/// Sets \p Name to a tensor of \p Type, any but String, with \p Rank (at most
/// 8) \p Extents. \p Data is copied.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetTensor(
    MLBridgeFeatureSetRef Features, const char *Name, MLBridgeElementType Type,
    const void *Data, const int64_t *Extents, size_t Rank);

/// The same without the copy: \p Data must stay as it is until the request has
/// been answered; an observation's, until its environment is called again; an
/// answer's, until its runner is.
MLBRIDGE_C_API MLBridgeStatus mlbridgeBorrowTensor(
    MLBridgeFeatureSetRef Features, const char *Name, MLBridgeElementType Type,
    const void *Data, const int64_t *Extents, size_t Rank);

/// Sets \p Name to a string, UTF-8, that is copied.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetString(MLBridgeFeatureSetRef Features,
                                                const char *Name,
                                                const char *Text);

/// The same for one that is not ended by a NUL, or has one in it.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetStringWithLength(MLBridgeFeatureSetRef Features, const char *Name,
                            const char *Text, size_t Length);

/// Sets \p Name to a list of \p Count strings, which are copied. \p Lengths has
/// their lengths; null where each is ended by a NUL.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetStringVector(
    MLBridgeFeatureSetRef Features, const char *Name, const char *const *Texts,
    const size_t *Lengths, size_t Count);

/// Sets \p Name to what \p From has under \p FromName (null: its only tensor,
/// or the one called "out"), whatever it is. Copied.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCopyTensor(MLBridgeFeatureSetRef Features,
                                                 const char *Name,
                                                 MLBridgeAdviceRef From,
                                                 const char *FromName);

/// Forgets all of \p Features. Evaluating does so by itself.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeClearFeatures(MLBridgeFeatureSetRef Features);

//===----------------------------------------------------------------------===//
// Advice: named tensors to be read
//===----------------------------------------------------------------------===//
// A null Name is the only tensor, or the one called "out". Conversions keep the
// value: an int64 5 is a fine int32, 300 is no int8, 1.0 is a fine int, 0.5 is
// not. The one rounding that is made is from double to float. Anything else is
// a SchemaMismatch.
//
// Pointers that come out are valid as long as the advice: that of a runner
// until the runner is asked again, that of a callback until it returns.

/// How many tensors there are; 0 for null.
MLBRIDGE_C_API size_t mlbridgeGetNumTensors(MLBridgeAdviceRef Advice);

/// Describes the tensor at \p Index in \p Tensor.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTensorAt(MLBridgeAdviceRef Advice,
                                                  size_t Index,
                                                  MLBridgeTensor *Tensor);

/// Describes the tensor called \p Name in \p Tensor. Its Data is where it is,
/// and aligned to its type, unless a peer with another library has sent it.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTensor(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeTensor *Tensor);

/// Writes the one element of \p Name, as a \p Type, any but String, to \p
/// Value.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetScalar(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                void *Value);

/// Points \p Values at the \p Count elements of \p Name, as \p Type, any but
/// String: in place where they are of that type, otherwise in a copy of the
/// advice's.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetVector(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                const void **Values,
                                                size_t *Count);

/// Points \p Text at the string \p Name, ended by a NUL. \p Length, which may
/// be null, is its length without that one.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetString(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                const char **Text,
                                                size_t *Length);

/// Points \p Texts at the \p Count strings of \p Name, each ended by a NUL. A
/// string counts as a list of one. MLBridgeTensor has their lengths.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetStringVector(MLBridgeAdviceRef Advice,
                                                      const char *Name,
                                                      const char *const **Texts,
                                                      size_t *Count);

//===----------------------------------------------------------------------===//
// Model runners
//===----------------------------------------------------------------------===//

/// Makes the runner that \p Spec names, such as `pipe:/tmp/advisor` or
/// `record:x.log|onnx:policy.onnx`: docs/model-specs.md. Nothing is connected
/// to or loaded before the first request. A model in this process is loaded
/// for this runner alone: runners that are to share one are made by one
/// factory. Unsupported: a scheme of a component that this installation does
/// not have.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateModelRunner(const char *Spec, MLBridgeModelRunnerRef *Runner);

/// The same from parts: `SCHEME:PATH?OPTIONS`, where \p Path has no character
/// percent-encoded, and \p Options, which may be null, is such as
/// "serdes=json&timeout=5s". What a path means is the scheme's affair: for
/// models in this process "a=x.onnx" is the file x.onnx with the label a, and
/// "./a=x.onnx", with a slash before the first "=", is a file.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCreateModelRunnerAt(
    const char *Scheme, const char *Path, const char *Options,
    MLBridgeModelRunnerRef *Runner);

/// What mlbridgeCreateModelRunner() would find wrong with the text of \p Spec:
/// for when a command line is read. No runner is made, no model is opened or
/// connected to. A scheme that is not built in has its module loaded, and with
/// it the libraries that the module links.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCheckModelSpec(const char *Spec);

/// Writes what the runner keeps back of the requests so far, as `record:`
/// does. mlbridgeDisposeModelRunner() writes it too, but can only print a
/// failure: call this before, where nothing may be lost in silence.
MLBRIDGE_C_API MLBridgeStatus mlbridgeFlush(MLBridgeModelRunnerRef Runner);

MLBRIDGE_C_API void mlbridgeDisposeModelRunner(MLBridgeModelRunnerRef Runner);

/// The features of the next request; the same handle for as long as the runner
/// lives. Null for null, which all functions on features refuse.
MLBRIDGE_C_API MLBridgeFeatureSetRef
mlbridgeGetFeatures(MLBridgeModelRunnerRef Runner);

/// Asks the model about the features that have been set, and forgets them,
/// whatever comes of it, also where it is not asked since an argument is wrong.
/// \p Advice is all that it says, and stays the runner's.
/// Deferred: the model leaves the decision to the compiler.
MLBRIDGE_C_API MLBridgeStatus mlbridgeEvaluate(MLBridgeModelRunnerRef Runner,
                                               MLBridgeAdviceRef *Advice);

/// The same, and tells the model that one scalar or one vector of \p Type is
/// wanted. Which is what it is asked for only: reading the advice converts it.
/// In C use the typed ones below: mlbridgeEvaluateBool(Runner, &Reply).
MLBRIDGE_C_API MLBridgeStatus mlbridgeEvaluateAs(MLBridgeModelRunnerRef Runner,
                                                 MLBridgeForm Form,
                                                 MLBridgeElementType Type,
                                                 MLBridgeAdviceRef *Advice);

/// How long one evaluate may take in all, in nanoseconds, or MLBRIDGE_FOREVER;
/// 30 s, or the `timeout` of the spec, unless it is set here.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetTimeout(MLBridgeModelRunnerRef Runner,
                                                 int64_t Nanoseconds);
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTimeout(MLBridgeModelRunnerRef Runner,
                                                 int64_t *Nanoseconds);

/// What the compiler has decided in the end: set one feature here before
/// mlbridgeLogOutcome(). Null for null.
MLBRIDGE_C_API MLBridgeFeatureSetRef
mlbridgeGetDecision(MLBridgeModelRunnerRef Runner);

/// Tells the runner what was decided on the last request, if
/// mlbridgeGetDecision() was given something (else it was what the model said),
/// and how good it was, unless \p Reward is null. Runners that learn or record
/// use it; the others take no notice.
MLBRIDGE_C_API MLBridgeStatus mlbridgeLogOutcome(MLBridgeModelRunnerRef Runner,
                                                 const double *Reward);

/// Names what the next requests are about (a module, a function), for logs.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSwitchContext(MLBridgeModelRunnerRef Runner, const char *Name);

/// The runner and its peer, for messages: "pipe:/tmp/advisor (bitstream)".
/// Valid until the next call for this runner.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeDescribeModelRunner(MLBridgeModelRunnerRef Runner, const char **Text);

//===----------------------------------------------------------------------===//
// Factories: schemes of your own
//===----------------------------------------------------------------------===//

/// A runner that is written in C.
typedef struct MLBridgeRunnerCallbacks {
  /// sizeof(MLBridgeRunnerCallbacks): a later library may know more of them.
  size_t Size;
  /// Opens what \p Path names, and points \p Runner at it, which the other
  /// functions get. \p User is what mlbridgeAddScheme() was given. Null: no
  /// path is taken, and the others get \p User.
  MLBridgeStatus (*Create)(void *User, const char *Path, void **Runner);
  /// Answers \p Request by what it sets in \p Reply, before \p Nanoseconds
  /// (or MLBRIDGE_FOREVER) have passed.
  MLBridgeStatus (*Evaluate)(void *Runner, MLBridgeAdviceRef Request,
                             int64_t Nanoseconds, MLBridgeFeatureSetRef Reply);
  /// Ends what Create has opened; may be null.
  void (*Dispose)(void *Runner);
} MLBridgeRunnerCallbacks;

/// Makes a factory that knows what mlbridgeCreateModelRunner() does. A model in
/// this process is loaded once for all of its runners, in whatever threads, and
/// anew after its file has changed. While no thread adds a scheme or sets a
/// time-out, any number of them may make runners by it and check specs at a
/// time.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateRunnerFactory(MLBridgeRunnerFactoryRef *Factory);

/// Runners that it has made live on.
MLBRIDGE_C_API void
mlbridgeDisposeRunnerFactory(MLBridgeRunnerFactoryRef Factory);

/// Adds the scheme \p Name, or replaces the one of that name. \p Help, a line
/// for your --help, may be null. \p Callbacks is copied; \p User is yours, and
/// outlives the factory and its runners. Where several threads make runners,
/// Create is called by them at a time.
MLBRIDGE_C_API MLBridgeStatus mlbridgeAddScheme(
    MLBridgeRunnerFactoryRef Factory, const char *Name, const char *Help,
    const MLBridgeRunnerCallbacks *Callbacks, void *User);

/// How many schemes it has; 0 for null. Those that modules bring, such as
/// `grpc`, are not among them: a module is loaded when a spec names it.
MLBRIDGE_C_API size_t mlbridgeGetNumSchemes(MLBridgeRunnerFactoryRef Factory);

/// The name of the scheme at \p Index and a line about it; either pointer may
/// be null. Valid until a scheme is added.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetSchemeAt(MLBridgeRunnerFactoryRef Factory, size_t Index,
                    const char **Name, const char **Help);

/// How long runners wait for their models to appear where the spec has no
/// `connect`, in nanoseconds, or MLBRIDGE_FOREVER; 30 s unless it is set.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetConnectTimeout(
    MLBridgeRunnerFactoryRef Factory, int64_t Nanoseconds);

/// mlbridgeCreateModelRunner() by the schemes of \p Factory.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCreateModelRunnerWithFactory(
    MLBridgeRunnerFactoryRef Factory, const char *Spec,
    MLBridgeModelRunnerRef *Runner);

/// mlbridgeCheckModelSpec() by the schemes of \p Factory.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCheckModelSpecWithFactory(
    MLBridgeRunnerFactoryRef Factory, const char *Spec);

//===----------------------------------------------------------------------===//
// Environments: the compiler as reinforcement learning sees it
//===----------------------------------------------------------------------===//

/// What an environment does. Each function gets the \p User of
/// mlbridgeCreateEnvironment(). A status other than Success ends the episode;
/// the message of mlbridgeFail(), or of the call that has failed, goes to
/// whoever drives it.
typedef struct MLBridgeEnvironmentCallbacks {
  /// sizeof(MLBridgeEnvironmentCallbacks).
  size_t Size;
  /// Starts an episode, and sets its first observation.
  MLBridgeStatus (*Reset)(void *User, MLBridgeEnvironmentRef Environment,
                          MLBridgeFeatureSetRef Observation);
  /// Does \p Action, and sets what is seen then. Call mlbridgeSetDone() at the
  /// end of the episode.
  MLBridgeStatus (*Step)(void *User, MLBridgeEnvironmentRef Environment,
                         MLBridgeAdviceRef Action,
                         MLBridgeFeatureSetRef Observation);
  /// The reward of the last step; null: always 0.
  double (*Reward)(void *User);
} MLBridgeEnvironmentCallbacks;

/// \p Callbacks is copied; \p User is yours, and outlives the environment.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateEnvironment(const MLBridgeEnvironmentCallbacks *Callbacks,
                          void *User, MLBridgeEnvironmentRef *Environment);

/// Not while it is being driven.
MLBRIDGE_C_API void
mlbridgeDisposeEnvironment(MLBridgeEnvironmentRef Environment);

/// Says that the episode has come to its own end.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetDone(MLBridgeEnvironmentRef Environment);
/// Says that a limit that is no part of the task, such as of steps, has cut it
/// short.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetTruncated(MLBridgeEnvironmentRef Environment);
/// Whether the episode is over, for either reason; false for null.
MLBRIDGE_C_API bool mlbridgeCheckDone(MLBridgeEnvironmentRef Environment);

/// The label of the agent that the observation is for; "" where there is one
/// only. Valid until it is set again.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetNextAgent(MLBridgeEnvironmentRef Environment, const char *Label);
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetNextAgent(MLBridgeEnvironmentRef Environment, const char **Label);

/// What else is worth knowing about the observation, as a JSON object: for
/// logs, not for learning.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetInfo(MLBridgeEnvironmentRef Environment, const char *JSON);

/// What this episode should take its random numbers from. \p HasSeed is false
/// where nobody cares; \p Seed is then left as it was.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetSeed(
    MLBridgeEnvironmentRef Environment, bool *HasSeed, int64_t *Seed);
/// What else was asked of this episode, as a JSON object, or "". Valid until
/// the episode is over.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetOptions(MLBridgeEnvironmentRef Environment, const char **JSON);

/// The runner that acts for the agent \p Label. Null: for all agents, and is
/// told by the feature `_agent`, where the environment says, whose turn it is.
typedef struct MLBridgeAgent {
  const char *Label;
  MLBridgeModelRunnerRef Runner;
} MLBridgeAgent;

/// Plays one episode in this process: reset, then each agent in its turn until
/// the environment is done, at most \p MaxSteps steps (more are a Timeout).
/// \p Return, which may be null, is the sum of the rewards.
MLBRIDGE_C_API MLBridgeStatus mlbridgeRunEpisode(
    MLBridgeEnvironmentRef Environment, const MLBridgeAgent *Agents,
    size_t NumAgents, size_t MaxSteps, double *Return);

/// The training direction, in which the model asks: meets the trainer that \p
/// Spec names (`pipe:NAME`, `shm:NAME`, `grpc://HOST:PORT`; docs/training.md)
/// and does what it says, until it closes, ends or dies, which is Success. The
/// trainer says so in MLBRIDGE_SPEC; where \p Spec is null, the InvalidArgument
/// says how such a program is started.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeServeEnvironment(MLBridgeEnvironmentRef Environment, const char *Spec);

//===----------------------------------------------------------------------===//
// The functions above for each C type
//===----------------------------------------------------------------------===//

/// What is defined here for Int32 and int32_t, and in the same way for Int8,
/// Int16, Int64, UInt8, UInt16, UInt32, UInt64, Float, Double and Bool:
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
/// They are inline, so that the ABI has one function where C has eleven types.
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

/// The answer as a string: see mlbridgeGetString().
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

/// The answer as a list of strings: see mlbridgeGetStringVector().
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
