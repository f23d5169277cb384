package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.context.RankContext;
import braid.internal.shared.SharedFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/// Allocating and closing leave no file, descriptor, mapping, thread or name behind, however often.
/// Counted by the system, in processes that do no other work.
@Isolated
class LeakTest {
  private static final int CYCLES = 10_000;

  /// Cycles between two new sizes, whose memory is allocated, mapped and unmapped; the others come
  /// from the pool.
  private static final int CYCLES_A_NEW_SIZE = 10;

  private static final int CYCLES_A_TENSOR = 10;

  /// More than the pool keeps idle, so that a size that returns has been freed.
  private static final int NEW_SIZES = 200;

  /// Growth of a JVM's own resources over time: compiler threads, malloc arenas and code heaps. A
  /// leak of one per cycle would be 10,000, of one per new buffer 1,000.
  private static final long SLACK = 250;

  @Test
  void tenThousandTensorsAndTenThousandGroupsLeaveNothing() throws Exception {
    for (var ended : ProcessRanks.run(2, Map.of(), OnRank.class)) {
      assertThat(ended.exitCode()).as(ended.output()).isZero();
      System.out.print(ended.output());
      var lines = ended.output().lines().toList();
      var before = Held.parse(lines.get(0));
      var tensors = Held.parse(lines.get(1));
      var groups = Held.parse(lines.get(2));
      for (var after : List.of(tensors, groups)) {
        assertThat(after.files()).isEqualTo(before.files());
        assertThat(after.descriptors()).isEqualTo(before.descriptors());
        assertThat(after.shared()).isEqualTo(before.shared());
        assertThat(after.names()).isEqualTo(before.names());
        assertThat(after.mappings()).isLessThan(before.mappings() + SLACK);
        assertThat(after.threads()).isLessThan(before.threads() + SLACK);
      }
      // Both cases occurred: a new buffer each tenth time, and the pool's otherwise.
      assertThat(lines.get(3))
          .matches("world: .*buffers allocated=1[0-9]{3}, .*buffers reused=[89][0-9]{3}, .*");
    }
  }

  /// Resources of a process: files of its session in /dev/shm, open descriptors, mappings of shared
  /// memory, mappings in all, threads, and names of groups.
  record Held(long files, long descriptors, long shared, long mappings, long threads, long names) {
    static Held now() throws IOException {
      var token = RankContext.current().env().store().orElseThrow().token();
      var maps = Files.readAllLines(Path.of("/proc/self/maps"));
      return new Held(
          count("/dev/shm", SharedFile.prefix(token)),
          count("/proc/self/fd", ""),
          maps.stream().filter(line -> line.contains("/dev/shm/braid-")).count(),
          maps.size(),
          count("/proc/self/task", ""),
          GroupRegistry.current().names().size());
    }

    private static long count(String folder, String prefix) throws IOException {
      try (var entries = Files.list(Path.of(folder))) {
        return entries.filter(each -> each.getFileName().toString().startsWith(prefix)).count();
      }
    }

    static Held parse(String line) {
      var numbers = new ArrayList<Long>();
      for (var each : line.replaceAll("[^0-9]+", " ").strip().split(" ", -1)) {
        numbers.add(Long.parseLong(each));
      }
      return new Held(
          numbers.get(0),
          numbers.get(1),
          numbers.get(2),
          numbers.get(3),
          numbers.get(4),
          numbers.get(5));
    }
  }

  static final class OnRank {
    private OnRank() {}

    public static void main(String[] args) throws IOException {
      try (var world = ProcessGroup.world()) {
        // Allocates everything that exists once, and fills the pool with the sizes used below.
        allocate(world, NEW_SIZES);
        groups(world, 2 * CYCLES_A_TENSOR);
        world.barrier();
        report(world);
        long start = System.nanoTime();
        for (int i = 0; i < CYCLES; i++) {
          boolean isNew = i % CYCLES_A_NEW_SIZE == 0;
          long size = isNew ? size(i / CYCLES_A_NEW_SIZE) : 100 + i % 7;
          SymmetricTensor.on(world).shape(size).allocate().close();
        }
        world.barrier();
        long tensorsEnd = System.nanoTime();
        report(world);
        groups(world, CYCLES);
        world.barrier();
        long groupsEnd = System.nanoTime();
        report(world);
        System.out.println("world: " + world.counters());
        System.out.printf(
            "%.1f s tensors, %.1f s groups%n",
            (tensorsEnd - start) / 1e9, (groupsEnd - tensorsEnd) / 1e9);
      }
    }

    private static long size(int i) {
      return 1000L + i % NEW_SIZES;
    }

    private static void allocate(ProcessGroup world, int count) {
      for (int i = 0; i < count; i++) {
        SymmetricTensor.on(world).shape(size(i)).allocate().close();
      }
    }

    private static void groups(ProcessGroup world, int cycles) {
      for (int i = 0; i < cycles; i++) {
        try (var pair = world.subset("pair" + i % 3, 0, 1)) {
          if (i % CYCLES_A_TENSOR == 0) {
            // Closed with its group.
            SymmetricTensor.on(pair).shape(64).allocate().local().fill(1);
          }
        }
      }
    }

    private static void report(ProcessGroup world) throws IOException {
      System.out.println(Held.now());
      // No rank begins while another one counts.
      world.barrier();
    }
  }
}
