package braid.bench;

import braid.model.Tuning;

/// A tuning that a workload is timed with.
///
/// @param method of the forms of one method, only the fastest is timed in rounds
public record Form(String name, String method, Tuning tuning) {
  static Form of(String method, Tuning tuning) {
    return new Form(tuning.toString(), method, tuning);
  }
}
