package braid.internal.rank;

import java.util.List;

/// A report on a wait that lasts, made right after a vain attempt. Waits of all ranks together show
/// whether ranks wait for each other in a circle.
///
/// @param thread identifies the waiting thread within its rank
/// @param number number of the wait within its rank
/// @param seen time of the latest answer that had arrived before the attempt
/// @param alone true if no other thread of the rank can make calls while this one waits
/// @param purpose text after "waits for rank 2"; see [Need]
/// @param missing ranks whose calls the wait needs, unless `meeting` knows them
public record BlockedWait(
    int epoch,
    long thread,
    long number,
    long seen,
    boolean alone,
    boolean message,
    String purpose,
    String scope,
    String meeting,
    List<Integer> missing) {
  public BlockedWait {
    missing = List.copyOf(missing);
  }

  /// Answers a report.
  ///
  /// @param time counts the reports of all ranks
  /// @param suspected true if the wait would be in a circle, should the waits of all its ranks
  ///   still last and their ranks have no other threads
  /// @param circle description of the circle that the wait is in; empty if none is certain
  public record Answer(long time, boolean suspected, String circle) {}
}
