package braid.internal.rank;

import java.util.List;
import java.util.function.Supplier;

/// Calls of other ranks without which a wait cannot end: each of the missing ranks must make one.
///
/// @param purpose text after "waits for rank 2", in messages: "to receive `x`"
/// @param message true if the wait is for a message between two ranks
/// @param scope name of the collectives that the waiting thread keeps for itself: no other thread
///   of its rank can call them meanwhile; empty if there are none
/// @param meeting key of the meeting at the store that knows the missing ranks; else empty
/// @param missing returns the missing ranks of the world; evaluated after a vain attempt
public record Need(
    Supplier<String> purpose,
    boolean message,
    String scope,
    String meeting,
    Supplier<List<Integer>> missing) {
  /// A need of calls that any thread of the missing ranks may make.
  public static Need of(Supplier<String> purpose, Supplier<List<Integer>> missing) {
    return new Need(purpose, false, "", "", missing);
  }
}
