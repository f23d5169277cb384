package braid.bench;

import braid.model.Tuning;
import java.util.Optional;

/// A way to compute a workload, under the name that tables show.
///
/// @param method of the forms of one method, only the fastest is timed in rounds
/// @param tuned tuning of the pipelines; empty for a standalone collective, whose way has the
///   form's name
public record Form(String name, String method, Optional<Tuning> tuned) {
  static Form of(String method, Tuning tuning) {
    return of(tuning.toString(), method, tuning);
  }

  static Form of(String name, String method, Tuning tuning) {
    return new Form(name, method, Optional.of(tuning));
  }

  Tuning tuning() {
    return tuned.orElseThrow();
  }
}
