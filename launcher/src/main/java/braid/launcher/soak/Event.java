package braid.launcher.soak;

import java.util.Optional;
import java.util.OptionalDouble;

/// One attack and what came of it.
///
/// @param what was done, for people
/// @param namedSeconds how long it took until the failure was named; empty where nothing fails
/// @param fault what did not hold; empty where all did
record Event(
    String victim,
    Attack attack,
    String what,
    OptionalDouble namedSeconds,
    Optional<String> fault) {}
