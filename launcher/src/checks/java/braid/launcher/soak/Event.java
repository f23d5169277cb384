package braid.launcher.soak;

import java.util.Optional;
import java.util.OptionalDouble;

/// One attack and its result.
///
/// @param target attacked rank, for reports
/// @param namedSeconds time until the failure was reported; empty if nothing fails
/// @param fault broken guarantee; empty if all were kept
record Event(
    String victim,
    Attack attack,
    String target,
    OptionalDouble namedSeconds,
    Optional<String> fault) {}
