//===- InterProcessModelRunner.h - A model in another process ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defines InterProcessModelRunner, which combines any SerDes with any
/// Transport.
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

/// Sends requests to a model in another process. The first request connects,
/// and waits for the peer to start if necessary. If a request is abandoned, for
/// example after a timeout, its session is never reused. The next request
/// therefore connects again.
///
/// If the peer does not start, the first request fails after the connect
/// timeout. Later requests do not wait for the peer. For 1 s, they fail
/// immediately. The first request after this interval tries to connect again.
/// After each unsuccessful try, the interval doubles, up to 30 s.
///
/// After a request has timed out, the peer may still be busy with it.
/// Therefore, the time to reconnect counts towards the next request's timeout.
///
/// A forked child does not use its parent's session. Its first request
/// connects.
class InterProcessModelRunner : public MLModelRunner {
public:
  InterProcessModelRunner(
      std::unique_ptr<Transport> Channel, std::unique_ptr<BaseSerDes> Codec,
      Duration ConnectTimeout = TransportOptions().ConnectTimeout);
  ~InterProcessModelRunner() override;

  /// Connects now instead of at the first request. Returns Timeout after the
  /// connect timeout, or another error of Transport::connect().
  Error connect(const AdviceSpec &Wanted = AdviceSpec::any());
  std::string describe() const override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  Error connectUntil(const AdviceSpec &Wanted, Deadline Until);
  /// Connects for a request with the deadline \p Until. After a failure, does
  /// not wait for the peer, and tries to connect only if the retry interval has
  /// passed.
  Error connectOrBackOff(const AdviceSpec &Wanted, Deadline Until);

  /// The last attempt to connect, if it timed out.
  struct FailedConnect {
    Error Why;
    Deadline NextAttempt;
    Duration Interval;
    /// Returns the error for a request before NextAttempt.
    Error asError() const;
  };

  std::unique_ptr<Transport> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  Duration ConnectTimeout;
  std::optional<FailedConnect> LastFailure;
  /// True after a request has timed out, because the peer may still be busy
  /// with it.
  bool MayBeBusy = false;
  /// A private copy of a reply in shared memory, for a SerDes that cannot read
  /// shared memory.
  std::unique_ptr<PrivateCopy> Copy;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_INTERPROCESSMODELRUNNER_H
