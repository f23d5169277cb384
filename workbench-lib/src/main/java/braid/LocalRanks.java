package braid;

import braid.internal.context.RankContext;
import braid.internal.rank.AttentionEngine;
import braid.internal.rank.Closing;
import braid.internal.rank.Env;
import braid.internal.store.MeetingTable;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.GroupAborted;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Place;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.Collectors;

/// Ranks that are threads of this process, for tests. They have the same groups, memory, streams
/// and signals as ranks in processes of their own.
///
/// ```java
/// LocalRanks.run(4, world -> assertThat(world.gather(1L)).hasSize(4));
/// ```
///
/// A rank that waits only for ranks whose bodies have ended fails at once: those cannot arrive any
/// more. So do ranks that wait for each other, unless their bodies have started threads, which may
/// still make the missing calls.
public final class LocalRanks {
  private LocalRanks() {}

  /// Code that each rank runs.
  @FunctionalInterface
  public interface Body {
    void run(ProcessGroup world) throws Exception;
  }

  /// Runs the body on that number of ranks, over links without limits.
  public static void run(int ranks, Body body) {
    Given.check("body", body);
    run(ranks, Link.UNLIMITED, body);
  }

  /// Runs the body on that number of ranks over such links and waits for all of them. If one fails,
  /// the others' waits are released. Throws the first failure, which caused the others; these are
  /// suppressed in it.
  public static void run(int ranks, Link link, Body body) {
    Given.check("link", link);
    Given.check("body", body);
    if (ranks < 1) {
      throw new BraidException("ranks must be 1 or more but was %d; try 4".formatted(ranks));
    }
    run(ranks, link, List.of(), body);
  }

  /// Runs the body on one rank per name. Ranks of the same name share memory; the others reach each
  /// other's memory by UCX, as ranks of several hosts do.
  public static void run(List<String> hosts, Body body) {
    Given.check("hosts", hosts);
    Given.check("body", body);
    if (hosts.isEmpty()) {
      throw new BraidException("hosts must name 1 or more but has none; pass one name per rank");
    }
    run(hosts.size(), Link.UNLIMITED, hosts, body);
  }

  private static void run(int ranks, Link link, List<String> hosts, Body body) {
    var table = new MeetingTable();
    var token = UUID.randomUUID().toString();
    var contexts = new ArrayList<RankContext>();
    for (int rank = 0; rank < ranks; rank++) {
      var place = new Place(rank, ranks);
      contexts.add(
          RankContext.ofThread(
              new Env(
                  place,
                  place,
                  hosts.isEmpty() ? Optional.empty() : Optional.of(hosts.get(rank)),
                  Optional.empty(),
                  BackendKind.HOST,
                  false,
                  link,
                  MemoryKind.AUTO,
                  Env.DEFAULT_TIMEOUT,
                  Env.DEFAULT_NVSHMEM_HEAP_BYTES,
                  true,
                  AttentionEngine.AUTO,
                  Optional.empty(),
                  Env.DEFAULT_CACHE,
                  Env.DEFAULT_PYTHON),
              token,
              table));
    }
    together(contexts, body);
  }

  private static void together(List<RankContext> contexts, Body body) {
    var failures = new ConcurrentLinkedQueue<Throwable>();
    var ended = ConcurrentHashMap.<RankContext>newKeySet();
    var threads =
        contexts.stream()
            .map(
                context ->
                    Thread.ofPlatform()
                        .name("rank-" + context.place().rank())
                        .start(() -> run(context, contexts, body, ended, failures)))
            .toList();
    try {
      for (var thread : threads) {
        thread.join();
      }
    } catch (InterruptedException e) {
      contexts.forEach(each -> each.release("the caller of LocalRanks.run was interrupted"));
      Thread.currentThread().interrupt();
      failures.add(new BraidException("interrupted while ranks ran", e));
    }
    var remaining = contexts.iterator();
    try {
      Closing.all(() -> remaining.hasNext() ? remaining.next() : null);
    } catch (BraidException e) {
      failures.add(e);
    }
    rethrow(failures);
  }

  private static void run(
      RankContext context,
      List<RankContext> all,
      Body body,
      Set<RankContext> ended,
      Queue<Throwable> failures) {
    try {
      context.run(
          () -> {
            context.waits().begin(() -> departed(ended), () -> isAlone(context));
            body.run(GroupRegistry.of(context).world());
            ended.add(context);
            return true;
          });
    } catch (Throwable e) {
      failures.add(e);
      var reason = "rank %d failed: %s".formatted(context.place().rank(), e);
      all.forEach(each -> each.release(reason));
    }
  }

  /// Returns the ranks that can no longer release a wait of another rank.
  private static Set<Integer> departed(Set<RankContext> ended) {
    return ended.stream()
        .filter(RankContext::isIdle)
        .map(context -> context.place().rank())
        .collect(Collectors.toSet());
  }

  /// Returns true if a rank has no thread but its body's: neither one that the body has started nor
  /// one of the common pool.
  private static boolean isAlone(RankContext context) {
    var pool = ForkJoinPool.commonPool();
    return !context.hasThreads() && pool.isQuiescent() && pool.getDelayedTaskCount() == 0;
  }

  private static void rethrow(Queue<Throwable> failures) {
    var first =
        failures.stream()
            .filter(e -> !(e instanceof GroupAborted))
            .findFirst()
            .orElse(failures.peek());
    if (first == null) {
      return;
    }
    failures.stream().filter(e -> !e.equals(first)).forEach(first::addSuppressed);
    switch (first) {
      case RuntimeException unchecked -> throw unchecked;
      case Error error -> throw error;
      default -> throw new BraidException("a rank failed: " + first, first);
    }
  }
}
