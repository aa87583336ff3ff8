//===- MLCompilerBridge.h - The C API -----------------------------*- C -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The C99 API of ML-Compiler-Bridge. Programs include this header and link
/// libMLCompilerBridge.so. docs/reference/c-api.md introduces the API.
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
/// **Names.** Types and constants begin with MLBridge. Functions begin with
/// mlbridge. A type `...Ref` is a handle. The caller owns each object that a
/// `Create` function makes, and destroys it with the `Dispose` function of the
/// same name. `Dispose` functions accept null. An object that a `Get` function
/// returns belongs to the handle that was passed to the function.
///
/// **Failures.** A function that can fail returns an MLBridgeStatus. If the
/// status is not Success, the function has written nothing through its
/// pointers, and mlbridgeGetLastErrorMessage() returns a message. A function
/// returns InvalidArgument if a required pointer is null, and System if memory
/// runs out. No function throws an exception.
///
/// **Waits.** Each wait for a model has a deadline, unless the time limit is
/// infinite (`timeout=inf` in the spec, or MLBRIDGE_FOREVER). A wait for a
/// trainer's command has no deadline by default.
///
/// **End of the process.** A call ends the process in only two cases. If memory
/// runs out, ONNX Runtime may end the process. If pthread_cancel() cancels a
/// thread during a call, the process also ends.
///
/// **Threads.** Only one thread at a time may use a handle and the objects that
/// belong to it. Different threads can use different handles at the same time.
/// Several threads can create runners with one factory at the same time, after
/// all its schemes have been added.
///
/// **ABI.** Names, constants and layouts do not change while the number in the
/// library's SONAME stays the same. New functions may be added.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_C_MLCOMPILERBRIDGE_H
#define MLCOMPILERBRIDGE_C_MLCOMPILERBRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MLBRIDGE_C_API __attribute__((visibility("default")))

// In C, an enum can hold any int, even a value that has no name in this
// version. With this macro, the same holds in C++.
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

/// Evaluates one model. The handle stands for a C++ object of class
/// MLModelRunner.
typedef struct MLBridgeOpaqueModelRunner *MLBridgeModelRunnerRef;
/// Named tensors that the caller writes: a request, an observation or a
/// decision.
typedef struct MLBridgeOpaqueFeatureSet *MLBridgeFeatureSetRef;
/// Named tensors that the caller reads: a model's advice, an action, or a
/// request to a runner written in C.
typedef struct MLBridgeOpaqueAdvice *MLBridgeAdviceRef;
/// A compiler as a reinforcement learning environment.
typedef struct MLBridgeOpaqueEnvironment *MLBridgeEnvironmentRef;
/// Creates runners from model specs. The scheme at the start of a spec, such as
/// `pipe:`, selects the kind of runner.
typedef struct MLBridgeOpaqueRunnerFactory *MLBridgeRunnerFactoryRef;
/// A model as machine code. MLCompilerBridge-C/AOTModel.h defines this struct.
struct MLBridgeAOTModel;

/// The result of a call. mlbridgeGetLastErrorMessage() returns the details.
typedef enum MLBridgeStatus MLBRIDGE_C_ENUM {
  MLBridgeStatusSuccess = 0,
  /// The peer did not connect or reply before the deadline.
  MLBridgeStatusTimeout = 1,
  /// The peer's process ended, or the peer closed the channel.
  MLBridgeStatusPeerClosed = 2,
  /// The received bytes do not follow the wire format.
  MLBridgeStatusMalformed = 3,
  /// A name, type or shape differs from the requested one, or a value does not
  /// fit the requested type.
  MLBridgeStatusSchemaMismatch = 4,
  /// The model itself failed. The message comes from the model.
  MLBridgeStatusModel = 5,
  /// This library, or this build of the library, does not support the request.
  MLBridgeStatusUnsupported = 6,
  /// A system call failed, or memory ran out.
  MLBridgeStatusSystem = 7,
  /// An argument is invalid, such as a null pointer, a model spec or a shape.
  MLBridgeStatusInvalidArgument = 8,
  /// The model leaves the decision to the compiler. This is not a failure.
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
  /// C's bool: one byte that is 0 or 1.
  MLBridgeElementBool = 10,
  /// UTF-8 text. A tensor of rank 0 is a string. A tensor of rank 1 is a list
  /// of strings.
  MLBridgeElementString = 11
} MLBridgeElementType;

/// The form of advice that the caller expects. Some models need this hint to
/// choose the type and the number of bytes of the reply.
typedef enum MLBridgeForm MLBRIDGE_C_ENUM {
  MLBridgeFormAny = 0,
  MLBridgeFormScalar = 1,
  MLBridgeFormVector = 2
} MLBridgeForm;

/// A named tensor in the library's memory. The elements are dense, row-major
/// and little-endian.
typedef struct MLBridgeTensor {
  const char *Name;
  MLBridgeElementType Type;
  /// The number of extents: 0 for a scalar, at most 8.
  uint32_t Rank;
  /// The Rank extents, outermost first.
  const int64_t *Extents;
  /// The NumElements elements. For strings, the concatenated bytes of all
  /// strings, without NULs.
  const void *Data;
  size_t NumBytes;
  size_t NumElements;
  /// For a list of strings, the length of each string in bytes. Otherwise null.
  const uint64_t *Lengths;
} MLBridgeTensor;

/// An infinite time-out.
#define MLBRIDGE_FOREVER INT64_MAX

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// Returns the library's version, such as "0.1.0".
MLBRIDGE_C_API const char *mlbridgeGetVersion(void);

/// Returns the name of \p Status, such as "Timeout" or "PeerClosed". Returns
/// "unknown error" if \p Status is not an MLBridgeStatus.
MLBRIDGE_C_API const char *mlbridgeGetStatusName(MLBridgeStatus Status);

/// Returns the message of this thread's last call that did not succeed.
/// Successful calls do not change the message. If every call has succeeded, the
/// message is "".
///
/// The message names the peer, the file or the feature. It also states what was
/// expected and what was found. For Deferred, the message is the model's
/// reason. The library owns the text. The text is valid until this thread calls
/// this function again.
MLBRIDGE_C_API const char *mlbridgeGetLastErrorMessage(void);

/// Sets this thread's last error message to \p Message and returns \p Status. A
/// null \p Message means that there is no message. Callbacks use this function
/// as follows: `return mlbridgeFail(MLBridgeStatusModel, "...")`.
MLBRIDGE_C_API MLBridgeStatus mlbridgeFail(MLBridgeStatus Status,
                                           const char *Message);

//===----------------------------------------------------------------------===//
// Features: named tensors to write
//===----------------------------------------------------------------------===//
// If a name already has a value, these functions replace the value. If a
// function fails, the request with these features returns the same error, even
// if the caller ignored the function's status.

/// Sets \p Name to a copy of a scalar of any \p Type except String. In C,
/// prefer the typed functions below, such as mlbridgeSetInt32(Features, "size",
/// 12).
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetScalar(MLBridgeFeatureSetRef Features,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                const void *Value);

/// Sets \p Name to a copy of the tensor \p Data of any \p Type except String.
/// \p Extents has \p Rank elements, at most 8.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetTensor(
    MLBridgeFeatureSetRef Features, const char *Name, MLBridgeElementType Type,
    const void *Data, const int64_t *Extents, size_t Rank);

/// Sets \p Name to a tensor as mlbridgeSetTensor() does, but does not copy
/// \p Data. \p Data must stay unchanged for the following time:
/// - For a request, until the reply arrives.
/// - For an observation, until the next call of the environment.
/// - For advice, until the next call of the runner.
MLBRIDGE_C_API MLBridgeStatus mlbridgeBorrowTensor(
    MLBridgeFeatureSetRef Features, const char *Name, MLBridgeElementType Type,
    const void *Data, const int64_t *Extents, size_t Rank);

/// Sets \p Name to a copy of a UTF-8 string.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetString(MLBridgeFeatureSetRef Features,
                                                const char *Name,
                                                const char *Text);

/// Sets \p Name to a copy of the \p Length bytes at \p Text. The string may
/// contain NULs, and need not end with a NUL.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetStringWithLength(MLBridgeFeatureSetRef Features, const char *Name,
                            const char *Text, size_t Length);

/// Sets \p Name to a list of copies of \p Count strings. \p Lengths has the
/// length of each string. \p Lengths may be null if every string ends with a
/// NUL.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetStringVector(
    MLBridgeFeatureSetRef Features, const char *Name, const char *const *Texts,
    const size_t *Lengths, size_t Count);

/// Sets \p Name to a copy of the tensor \p FromName of \p From. The tensor can
/// have any type. If \p FromName is null, copies the only tensor of \p From, or
/// the tensor named "out" if there are several.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCopyTensor(MLBridgeFeatureSetRef Features,
                                                 const char *Name,
                                                 MLBridgeAdviceRef From,
                                                 const char *FromName);

/// Removes all features. The evaluate functions do this automatically.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeClearFeatures(MLBridgeFeatureSetRef Features);

//===----------------------------------------------------------------------===//
// Advice: named tensors to read
//===----------------------------------------------------------------------===//
// A null Name selects the only tensor, or the tensor named "out" if there are
// several.
//
// Conversions preserve the value. For example, an int64 5 converts to int32 and
// a double 1.0 converts to int32, but 300 does not convert to int8 and 0.5 does
// not convert to int32. Only a conversion from double to float may round. A
// function returns SchemaMismatch if it cannot convert a value.
//
// Returned pointers are valid while the advice is valid. The advice of a runner
// is valid until the next request to the runner. Advice that was passed to a
// callback is valid until the callback returns.

/// Returns the number of tensors, or 0 if \p Advice is null.
MLBRIDGE_C_API size_t mlbridgeGetNumTensors(MLBridgeAdviceRef Advice);

/// Writes a description of the tensor at \p Index to \p Tensor.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTensorAt(MLBridgeAdviceRef Advice,
                                                  size_t Index,
                                                  MLBridgeTensor *Tensor);

/// Writes a description of the tensor \p Name to \p Tensor, without copying the
/// elements. Tensor->Data is aligned for the element type, unless the tensor
/// comes from a peer that does not use this library.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTensor(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeTensor *Tensor);

/// Converts the only element of \p Name to \p Type and writes the result to
/// \p Value. \p Type must not be String.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetScalar(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                void *Value);

/// Points \p Values to the elements of \p Name, converted to \p Type, and sets
/// \p Count to their number. \p Type must not be String. If the elements
/// already have this type, they are not copied. Otherwise, \p Values points to
/// a converted copy that the advice owns.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetVector(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                MLBridgeElementType Type,
                                                const void **Values,
                                                size_t *Count);

/// Points \p Text to the string \p Name, which ends with a NUL. \p Length
/// receives the length without the NUL. \p Length may be null.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetString(MLBridgeAdviceRef Advice,
                                                const char *Name,
                                                const char **Text,
                                                size_t *Length);

/// Points \p Texts to the strings of \p Name, and sets \p Count to their
/// number. Each string ends with a NUL. A tensor of rank 0 is returned as a
/// list of one string. To get the lengths of the strings in a list, call
/// mlbridgeGetTensor().
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetStringVector(MLBridgeAdviceRef Advice,
                                                      const char *Name,
                                                      const char *const **Texts,
                                                      size_t *Count);

//===----------------------------------------------------------------------===//
// Model runners
//===----------------------------------------------------------------------===//

/// Creates the runner for \p Spec, such as `pipe:/tmp/advisor` or
/// `record:x.log|onnx:policy.onnx`. docs/reference/model-specs.md lists all
/// specs. The runner connects to its model, or loads it, at the first request.
/// Each runner from this function loads a separate copy of an in-process model,
/// whereas the runners of one factory share one copy. Returns Unsupported if a
/// scheme belongs to a component that is not installed.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateModelRunner(const char *Spec, MLBridgeModelRunnerRef *Runner);

/// Creates a runner as mlbridgeCreateModelRunner() does, from the parts of the
/// spec `SCHEME:PATH?OPTIONS`. \p Path is not percent-encoded. \p Options is a
/// string such as "serdes=json&timeout=5s", or null.
///
/// The scheme defines the meaning of a path. For an in-process model, the path
/// "a=x.onnx" means the file x.onnx with the label a. But "./a=x.onnx" means
/// the file ./a=x.onnx, because a label cannot contain a slash.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCreateModelRunnerAt(
    const char *Scheme, const char *Path, const char *Options,
    MLBridgeModelRunnerRef *Runner);

/// Checks the text of \p Spec, for example when a command line is parsed.
/// Reports the mistakes that mlbridgeCreateModelRunner() would report, but
/// creates no runner, opens no model and does not connect. If a scheme is not
/// built in, this function loads the scheme's module and the libraries that the
/// module links.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCheckModelSpec(const char *Spec);

/// Writes buffered data, such as the log of `record:`.
/// mlbridgeDisposeModelRunner() also writes buffered data, but it can only
/// print an error. To receive the error, call this function first.
MLBRIDGE_C_API MLBridgeStatus mlbridgeFlush(MLBridgeModelRunnerRef Runner);

MLBRIDGE_C_API void mlbridgeDisposeModelRunner(MLBridgeModelRunnerRef Runner);

/// Returns the features of the next request. The handle stays the same while
/// the runner exists. Returns null if \p Runner is null. All functions on
/// features return an error for a null handle.
MLBRIDGE_C_API MLBridgeFeatureSetRef
mlbridgeGetFeatures(MLBridgeModelRunnerRef Runner);

/// Sends the features to the model, then clears them. The features are cleared
/// even if the call fails or an argument is invalid. \p Advice receives the
/// whole reply, which belongs to the runner. Returns Deferred if the model
/// leaves the decision to the compiler.
MLBRIDGE_C_API MLBridgeStatus mlbridgeEvaluate(MLBridgeModelRunnerRef Runner,
                                               MLBridgeAdviceRef *Advice);

/// Evaluates as mlbridgeEvaluate() does, and informs the model that the caller
/// expects one scalar or vector of \p Type. This information is only a hint,
/// because the functions that read the advice convert it. In C, prefer the
/// typed functions below, such as mlbridgeEvaluateBool(Runner, &Reply).
MLBRIDGE_C_API MLBridgeStatus mlbridgeEvaluateAs(MLBridgeModelRunnerRef Runner,
                                                 MLBridgeForm Form,
                                                 MLBridgeElementType Type,
                                                 MLBridgeAdviceRef *Advice);

/// Sets or gets the time limit of one evaluation, in nanoseconds or
/// MLBRIDGE_FOREVER. The default is the spec's option `timeout`, or 30 s if the
/// spec lacks this option.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetTimeout(MLBridgeModelRunnerRef Runner,
                                                 int64_t Nanoseconds);
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetTimeout(MLBridgeModelRunnerRef Runner,
                                                 int64_t *Nanoseconds);

/// Returns a feature set for the compiler's final decision. Set one feature in
/// it before you call mlbridgeLogOutcome(). Returns null if \p Runner is null.
MLBRIDGE_C_API MLBridgeFeatureSetRef
mlbridgeGetDecision(MLBridgeModelRunnerRef Runner);

/// Passes the outcome of the last request to the runner: the compiler's
/// decision and, unless \p Reward is null, the reward. The decision is the
/// feature in mlbridgeGetDecision(). Without this feature, the decision is the
/// model's advice. Runners that learn or record use the outcome. Other runners
/// ignore it.
MLBRIDGE_C_API MLBridgeStatus mlbridgeLogOutcome(MLBridgeModelRunnerRef Runner,
                                                 const double *Reward);

/// Sets the name under which logs record the next requests, such as the name of
/// a module or a function.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSwitchContext(MLBridgeModelRunnerRef Runner, const char *Name);

/// Describes the runner and its peer for messages, for example as
/// "pipe:/tmp/advisor (bitstream)". \p Text is valid until the next call for
/// this runner.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeDescribeModelRunner(MLBridgeModelRunnerRef Runner, const char **Text);

//===----------------------------------------------------------------------===//
// Factories: your own schemes
//===----------------------------------------------------------------------===//

/// A runner written in C.
typedef struct MLBridgeRunnerCallbacks {
  /// sizeof(MLBridgeRunnerCallbacks). The library checks the size because later
  /// versions may have more members.
  size_t Size;
  /// Opens \p Path and stores a pointer in \p Runner. The other functions
  /// receive this pointer. \p User comes from mlbridgeAddScheme(). If Create is
  /// null, the scheme accepts no path, and the other functions receive \p User.
  MLBridgeStatus (*Create)(void *User, const char *Path, void **Runner);
  /// Evaluates \p Request within \p Nanoseconds and sets the advice in
  /// \p Reply. \p Request has the type of an advice, because Evaluate reads its
  /// tensors. \p Nanoseconds may be MLBRIDGE_FOREVER.
  MLBridgeStatus (*Evaluate)(void *Runner, MLBridgeAdviceRef Request,
                             int64_t Nanoseconds, MLBridgeFeatureSetRef Reply);
  /// Destroys the runner that Create returned. Dispose may be null.
  void (*Dispose)(void *Runner);
} MLBridgeRunnerCallbacks;

/// Creates a factory with the schemes of mlbridgeCreateModelRunner(). All
/// runners of the factory, in all threads, share one copy of an in-process
/// model. A runner loads the model at its first request. If the file has
/// changed since an earlier load, this request loads the new file. Runners that
/// have already made a request keep the old model. Any number of threads can
/// create runners and check specs at the same time. During this time, no thread
/// may add a scheme or a model, or set a time-out.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateRunnerFactory(MLBridgeRunnerFactoryRef *Factory);

/// Destroys \p Factory. Runners that the factory has created remain valid.
MLBRIDGE_C_API void
mlbridgeDisposeRunnerFactory(MLBridgeRunnerFactoryRef Factory);

/// Adds the scheme \p Name, or replaces the scheme with this name. \p Help is a
/// line for your program's --help, or null. \p Callbacks is copied. \p User
/// must outlive the factory and its runners. The callback Create must be
/// thread-safe if several threads create runners at the same time.
MLBRIDGE_C_API MLBridgeStatus mlbridgeAddScheme(
    MLBridgeRunnerFactoryRef Factory, const char *Name, const char *Help,
    const MLBridgeRunnerCallbacks *Callbacks, void *User);

/// Adds \p Model, which is linked into the program. The factory then accepts
/// the spec `builtin:NAME`, where NAME is the model's name. The header from
/// `mlbridge compile` declares the model as `mlbridge_aot_model_NAME`. \p Model
/// must outlive the factory and its runners. Returns one of these errors:
/// - InvalidArgument if the factory already has a model of this name.
/// - Malformed if \p Model was not made by `mlbridge compile`.
/// - Unsupported if the version of the struct differs from this library's
///   MLBRIDGE_AOT_ABI, or if this CPU cannot run the model.
MLBRIDGE_C_API MLBridgeStatus mlbridgeAddBuiltinModel(
    MLBridgeRunnerFactoryRef Factory, const struct MLBridgeAOTModel *Model);

/// Returns the number of schemes, or 0 if \p Factory is null. Schemes from
/// modules, such as `grpc`, are not counted, because a module is loaded only
/// when a spec names its scheme.
MLBRIDGE_C_API size_t mlbridgeGetNumSchemes(MLBridgeRunnerFactoryRef Factory);

/// Gets the name and the help line of the scheme at \p Index. \p Name or
/// \p Help may be null. The strings are valid until a scheme or a model is
/// added.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetSchemeAt(MLBridgeRunnerFactoryRef Factory, size_t Index,
                    const char **Name, const char **Help);

/// Sets how long a runner waits for its model to start if the spec lacks the
/// option `connect`. The time is in nanoseconds or MLBRIDGE_FOREVER. The
/// default is 30 s.
MLBRIDGE_C_API MLBridgeStatus mlbridgeSetConnectTimeout(
    MLBridgeRunnerFactoryRef Factory, int64_t Nanoseconds);

/// Creates a runner as mlbridgeCreateModelRunner() does, with the schemes of
/// \p Factory.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCreateModelRunnerWithFactory(
    MLBridgeRunnerFactoryRef Factory, const char *Spec,
    MLBridgeModelRunnerRef *Runner);

/// Checks \p Spec as mlbridgeCheckModelSpec() does, with the schemes of
/// \p Factory.
MLBRIDGE_C_API MLBridgeStatus mlbridgeCheckModelSpecWithFactory(
    MLBridgeRunnerFactoryRef Factory, const char *Spec);

//===----------------------------------------------------------------------===//
// Environments: a compiler as a reinforcement learning environment
//===----------------------------------------------------------------------===//

/// The functions of an environment. Each function receives the pointer \p User
/// that was passed to mlbridgeCreateEnvironment(). If a function returns a
/// status other than Success, the episode ends. The trainer then receives the
/// last error message.
typedef struct MLBridgeEnvironmentCallbacks {
  /// sizeof(MLBridgeEnvironmentCallbacks). The library checks the size because
  /// later versions may have more members.
  size_t Size;
  /// Starts an episode and sets its first observation.
  MLBridgeStatus (*Reset)(void *User, MLBridgeEnvironmentRef Environment,
                          MLBridgeFeatureSetRef Observation);
  /// Applies \p Action and sets the next observation. Call mlbridgeSetDone() at
  /// the end of the episode.
  MLBridgeStatus (*Step)(void *User, MLBridgeEnvironmentRef Environment,
                         MLBridgeAdviceRef Action,
                         MLBridgeFeatureSetRef Observation);
  /// Returns the reward of the last step. If Reward is null, all rewards are 0.
  double (*Reward)(void *User);
} MLBridgeEnvironmentCallbacks;

/// Creates an environment. \p Callbacks is copied. \p User must outlive the
/// environment.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeCreateEnvironment(const MLBridgeEnvironmentCallbacks *Callbacks,
                          void *User, MLBridgeEnvironmentRef *Environment);

/// Destroys an environment. No other function may be using the environment.
MLBRIDGE_C_API void
mlbridgeDisposeEnvironment(MLBridgeEnvironmentRef Environment);

/// Marks the episode as terminated, that is, the task itself has ended.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetDone(MLBridgeEnvironmentRef Environment);
/// Marks the episode as truncated by a limit outside the task, such as a
/// maximum number of steps.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetTruncated(MLBridgeEnvironmentRef Environment);
/// Returns whether the episode is terminated or truncated. Returns false if
/// \p Environment is null.
MLBRIDGE_C_API bool mlbridgeCheckDone(MLBridgeEnvironmentRef Environment);

/// Sets or gets the label of the agent that receives the observation. The label
/// is "" if there is only one agent. A label from mlbridgeGetNextAgent() is
/// valid until the label is set again.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetNextAgent(MLBridgeEnvironmentRef Environment, const char *Label);
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetNextAgent(MLBridgeEnvironmentRef Environment, const char **Label);

/// Sets additional information about the observation, as a JSON object. The
/// information is for logs, not for learning.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeSetInfo(MLBridgeEnvironmentRef Environment, const char *JSON);

/// Gets the seed for this episode's random numbers. If the trainer has set no
/// seed, \p HasSeed becomes false and \p Seed does not change.
MLBRIDGE_C_API MLBridgeStatus mlbridgeGetSeed(
    MLBridgeEnvironmentRef Environment, bool *HasSeed, int64_t *Seed);
/// Gets the trainer's other options for this episode. \p JSON is a JSON object,
/// or "" if there are no options. \p JSON is valid until the episode is over.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeGetOptions(MLBridgeEnvironmentRef Environment, const char **JSON);

/// The runner that acts for the agent Label. If Label is null, the runner acts
/// for all agents. If the environment names the next agent, the agent's runner
/// receives the label as the feature `_agent`.
typedef struct MLBridgeAgent {
  const char *Label;
  MLBridgeModelRunnerRef Runner;
} MLBridgeAgent;

/// Runs one episode in this process. Resets the environment, then lets the next
/// agent act in each step until the episode is over. Returns Timeout if the
/// episode needs more than \p MaxSteps steps. \p Return receives the sum of the
/// rewards. \p Return may be null.
MLBRIDGE_C_API MLBridgeStatus mlbridgeRunEpisode(
    MLBridgeEnvironmentRef Environment, const MLBridgeAgent *Agents,
    size_t NumAgents, size_t MaxSteps, double *Return);

/// Serves \p Environment to a trainer, which sends requests. Connects to the
/// trainer that \p Spec names and executes the trainer's commands. Returns
/// Success when the trainer closes the session, disconnects or dies.
///
/// \p Spec is `pipe:NAME`, `shm:NAME` or `grpc://HOST:PORT`.
/// docs/guides/training.md describes these specs. The trainer passes the spec
/// in the environment variable MLBRIDGE_SPEC. If \p Spec is null, returns
/// InvalidArgument with a message about how to start the program.
MLBRIDGE_C_API MLBridgeStatus
mlbridgeServeEnvironment(MLBridgeEnvironmentRef Environment, const char *Spec);

//===----------------------------------------------------------------------===//
// The functions above for each C type
//===----------------------------------------------------------------------===//

/// This macro defines the following functions for Int32 and int32_t. The same
/// functions exist for Int8, Int16, Int64, UInt8, UInt16, UInt32, UInt64,
/// Float, Double and Bool.
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
/// Each of these functions is inline and passes an MLBridgeElementType to an
/// exported function. Therefore, the ABI needs only one function for all eleven
/// types.
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

/// Evaluates the model and gets the advice as mlbridgeGetString() does.
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

/// Evaluates the model and gets the advice as mlbridgeGetStringVector() does.
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
