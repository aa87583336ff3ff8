//===- InterProcessModelRunner.h - A model in another process ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InterProcessModelRunner: combines any SerDes with any Transport.
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_RUNNERS_INTERPROCESSMODELRUNNER_H
#define MLCOMPILERBRIDGE_RUNNERS_INTERPROCESSMODELRUNNER_H

#include "MLCompilerBridge/MLModelRunner.h"
#include "MLCompilerBridge/SerDes/BaseSerDes.h"
#include "MLCompilerBridge/Transport/Transport.h"

#include <optional>

namespace MLBridge {

class PrivateCopy;

/// Asks a model in another process. The first request connects, waiting for the
/// peer to start if necessary. The first request after an error reconnects,
/// since the session of an abandoned request is never reused.
///
/// If the peer does not appear, the first request waits for the connect
/// timeout. Later requests fail immediately; they try to connect, without
/// waiting, 1 s after the first failure, then 2, 4, ... 30 s apart, until they
/// succeed.
///
/// After a request has timed out, the peer may still be processing it. Then the
/// time to reconnect counts towards the next request's timeout.
///
/// A forked child has its own session: its first request connects.
class InterProcessModelRunner : public MLModelRunner {
public:
  InterProcessModelRunner(
      std::unique_ptr<Transport> Channel, std::unique_ptr<BaseSerDes> Codec,
      Duration ConnectTimeout = TransportOptions().ConnectTimeout);
  ~InterProcessModelRunner() override;

  /// Connects now rather than at the first request. Errors: Timeout after the
  /// connect timeout, and those of Transport::connect().
  Error connect(const AdviceSpec &Wanted = AdviceSpec::any());
  std::string describe() const override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  Error connectUntil(const AdviceSpec &Wanted, Deadline Until);
  /// Connects for a request whose deadline is \p Until. After a failure, does
  /// not wait for the peer again, and tries again only after the retry
  /// interval.
  Error connectOrBackOff(const AdviceSpec &Wanted, Deadline Until);

  /// The last attempt to connect, which timed out.
  struct FailedConnect {
    Error Why;
    Deadline NextAttempt;
    Duration Interval;
    /// The error of a request before NextAttempt.
    Error asError() const;
  };

  std::unique_ptr<Transport> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  Duration ConnectTimeout;
  std::optional<FailedConnect> LastFailure;
  /// True after a request has timed out.
  bool MayBeBusy = false;
  /// The copy of a reply in shared memory, for a SerDes that cannot read shared
  /// memory.
  std::unique_ptr<PrivateCopy> Copy;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_INTERPROCESSMODELRUNNER_H
