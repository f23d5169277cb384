package braid.launcher.cli.doctor;

import java.util.Locale;
import java.util.Optional;

/// One thing that `doctor` looked for. `id` is stable, for programs; `value` says what is here, or
/// why it is not; `remedy` what to do about it.
record Check(String id, String title, State state, String value, Optional<String> remedy) {
  enum State {
    OK,
    /// Not here, and Braid does without.
    ABSENT,
    /// Not here, and Braid needs it.
    MISSING;

    String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  static Check ok(String id, String title, String value) {
    return new Check(id, title, State.OK, value, Optional.empty());
  }

  static Check absent(String id, String title, String why) {
    return new Check(id, title, State.ABSENT, why, Optional.empty());
  }

  static Check absent(String id, String title, String why, String remedy) {
    return new Check(id, title, State.ABSENT, why, Optional.of(remedy));
  }

  static Check missing(String id, String title, String why, String remedy) {
    return new Check(id, title, State.MISSING, why, Optional.of(remedy));
  }
}
