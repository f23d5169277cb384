package braid.launcher.soak;

/// An attack on a session.
enum Attack {
  INTERRUPT("a cell is interrupted", 36),
  TIME_LIMIT("a cell meets its time limit", 8),
  FAILURE("a rank throws, or leaves the cell, or the cell does not compile", 26),
  FLOOD("all ranks print megabytes", 8),
  PAUSE("a rank is frozen for less than a second", 8),
  KILL("a rank is killed in a cell", 6),
  KILL_IDLE("a rank is killed between cells", 4),
  EXIT("a rank ends itself", 3),
  FREEZE("a rank is frozen until that is reported", 1),
  FREEZE_AND_INTERRUPT("a rank is frozen and the cell interrupted", 4),
  RESTART("%restart", 5),
  FRONT("the front is killed", 1);

  /// Description for reports.
  final String title;

  /// Relative frequency.
  final int weight;

  Attack(String title, int weight) {
    this.title = title;
    this.weight = weight;
  }

  static int weights() {
    int sum = 0;
    for (var attack : values()) {
      sum += attack.weight;
    }
    return sum;
  }

  /// Returns the attack at this place, from 0 to less than [#weights].
  static Attack at(int place) {
    int left = place;
    for (var attack : values()) {
      left -= attack.weight;
      if (left < 0) {
        return attack;
      }
    }
    throw new IllegalArgumentException(
        "place must be less than the sum of weights but was " + place);
  }
}
