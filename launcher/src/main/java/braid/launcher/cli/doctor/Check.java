package braid.launcher.cli.doctor;

import java.util.Locale;
import java.util.Optional;

/// One result of `doctor`. `id` is stable, for programs; `value` describes it or why it is missing;
/// `remedy` is what to do about it.
record Check(String id, String title, State state, String value, Optional<String> remedy) {
  enum State {
    OK,
    /// Missing but optional.
    ABSENT,
    /// Missing but required.
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
