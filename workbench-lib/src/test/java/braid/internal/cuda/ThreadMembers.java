package braid.internal.cuda;

import braid.internal.resource.Rendezvous;
import braid.model.Place;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CyclicBarrier;

/// Members of a group as threads, which exchange values.
public final class ThreadMembers {
  private final List<Integer> ranks;
  private final String[] values;
  private final CyclicBarrier written;
  private final CyclicBarrier read;

  private ThreadMembers(List<Integer> ranks) {
    this.ranks = ranks;
    this.values = new String[ranks.size()];
    this.written = new CyclicBarrier(ranks.size());
    this.read = new CyclicBarrier(ranks.size());
  }

  /// Work of one member.
  @FunctionalInterface
  public interface Body<T> {
    T run(int rank, Rendezvous rendezvous);
  }

  /// Runs the body on every member, and returns the results in the members' order, or throws the
  /// first member's failure. Either way all members have ended.
  public static <T> List<T> run(List<Integer> ranks, Body<T> body) {
    var members = new ThreadMembers(ranks);
    var running = new ArrayList<CompletableFuture<T>>();
    for (int i = 0; i < ranks.size(); i++) {
      int index = i;
      running.add(
          CompletableFuture.supplyAsync(
              () -> body.run(ranks.get(index), members.new Member(index)),
              task -> Thread.ofPlatform().daemon().start(task)));
    }
    var ended = CompletableFuture.allOf(running.toArray(CompletableFuture<?>[]::new));
    ended.handle((_, _) -> null).join();
    try {
      return running.stream().map(CompletableFuture::join).toList();
    } catch (CompletionException e) {
      throw e.getCause() instanceof RuntimeException cause ? cause : e;
    }
  }

  private final class Member implements Rendezvous {
    private final int index;

    Member(int index) {
      this.index = index;
    }

    @Override
    public Place place() {
      return new Place(index, ranks.size());
    }

    @Override
    public List<Integer> ranks() {
      return ranks;
    }

    @Override
    public String unique() {
      return "test";
    }

    @Override
    public List<String> exchange(String label, String value) {
      values[index] = value;
      await(written);
      var all = List.of(values);
      await(read);
      return all;
    }

    private static void await(CyclicBarrier barrier) {
      try {
        barrier.await();
      } catch (InterruptedException | BrokenBarrierException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
