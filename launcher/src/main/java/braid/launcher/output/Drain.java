package braid.launcher.output;

import braid.launcher.ranks.RankEvent;
import braid.launcher.ranks.RankEvent.Channel;
import java.util.Collection;
import java.util.HashSet;
import java.util.Set;

/// Waits until the ranks' pipes have delivered the whole output of a cell: each rank marks both of
/// its pipes at the end of the cell, and the cell is over when every mark has arrived.
public final class Drain {
  private record Pipe(int rank, Channel channel) {}

  private final Set<Pipe> awaited = new HashSet<>();
  private long number;

  /// Starts a new round; marks of earlier ones are ignored.
  public synchronized long begin(int ranks) {
    number++;
    awaited.clear();
    for (int rank = 0; rank < ranks; rank++) {
      awaited.add(new Pipe(rank, Channel.STDOUT));
      awaited.add(new Pipe(rank, Channel.STDERR));
    }
    return number;
  }

  public synchronized void marked(RankEvent.OutputMarked mark) {
    if (mark.number() == number) {
      awaited.remove(new Pipe(mark.rank(), mark.channel()));
      notifyAll();
    }
  }

  /// Removes a dead rank, whose pipes were read to their end before its death was reported.
  public synchronized void died(int rank) {
    awaited.removeIf(pipe -> pipe.rank == rank);
    notifyAll();
  }

  /// Waits for the marks of these ranks.
  public synchronized void await(Collection<Integer> ranks) throws InterruptedException {
    awaited.removeIf(pipe -> !ranks.contains(pipe.rank));
    while (!awaited.isEmpty()) {
      wait();
    }
  }
}
