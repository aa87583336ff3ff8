//===- InterProcessModelRunner.h - A model in another process ---*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// InterProcessModelRunner: any SerDes over any Transport. A new transport or
/// SerDes needs no runner of its own.
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

/// Asks a model in another process. The first request meets the peer (it may
/// start later than we do); so does the first request after an error, since a
/// session in which a request was given up is never used again.
///
/// A peer that does not appear costs the connect timeout once. Later requests
/// fail at once, and look for the peer without waiting: 1 s after the first
/// failure, then 2, 4, ... 30 s apart, until it is there.
///
/// After a request that timed out the peer is there, but may still be busy
/// with it: meeting it anew then is part of the next request's time.
///
/// A child that was forked has a session of its own: its first request meets
/// the peer anew.
class InterProcessModelRunner : public MLModelRunner {
public:
  InterProcessModelRunner(
      std::unique_ptr<Transport> Channel, std::unique_ptr<BaseSerDes> Codec,
      Duration ConnectTimeout = TransportOptions().ConnectTimeout);
  ~InterProcessModelRunner() override;

  /// Meets the peer now rather than at the first request.
  Error connect(const AdviceSpec &Wanted = AdviceSpec::any());
  std::string describe() const override;

protected:
  Expected<Advice> evaluateUntyped(const FeatureSet &Features,
                                   const AdviceSpec &Wanted,
                                   Deadline Until) override;

private:
  Error connectUntil(const AdviceSpec &Wanted, Deadline Until);
  /// For a request, whose deadline is \p Until: waits the first time only.
  Error connectOrBackOff(const AdviceSpec &Wanted, Deadline Until);

  /// A peer that did not appear.
  struct Absence {
    Error Why;
    Deadline NextLook;
    Duration Pause;
    /// The failure for a request before NextLook.
    Error notNow() const;
  };

  std::unique_ptr<Transport> Channel;
  std::unique_ptr<BaseSerDes> Codec;
  Duration ConnectTimeout;
  std::optional<Absence> Absent;
  /// The last request timed out.
  bool MayBeBusy = false;
  /// Of answers in memory that the peer can write to, for a SerDes that cannot
  /// read there.
  std::unique_ptr<PrivateCopy> Copy;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_RUNNERS_INTERPROCESSMODELRUNNER_H
