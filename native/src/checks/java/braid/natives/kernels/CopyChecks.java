package braid.natives.kernels;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Checks copies of odd sizes from and to odd addresses.
final class CopyChecks {
  private static final List<Integer> SIZES_BYTES =
      List.of(1, 2, 15, 16, 17, 31, 255, 256, 4097, 65541, (1 << 20) + 13);

  /// Offsets of destination and source from a multiple of 256.
  private static final List<List<Integer>> SHIFTS_BYTES =
      List.of(
          List.of(0, 0),
          List.of(1, 1),
          List.of(3, 3),
          List.of(13, 13),
          List.of(0, 8),
          List.of(4, 0),
          List.of(2, 0),
          List.of(5, 0),
          List.of(0, 7),
          List.of(15, 14));

  private static final List<Integer> BLOCKS = List.of(1, 3, 132);

  private static final List<Integer> TMA_SIZES_BYTES =
      List.of(16, 4080, 16384, 16400, 5 * 16384, (1 << 20) + 48, 3 << 20);

  /// Number of signal checks, each with other content.
  private static final int SIGNALLED = 50;

  /// Row size, number of rows, and the pitches of destination and source.
  private record Rows(int rowBytes, int rows, int toPitch, int fromPitch) {}

  private static final List<Rows> ROWS =
      List.of(
          new Rows(16, 5, 16, 48),
          new Rows(1, 3, 1, 7),
          new Rows(100, 33, 100, 104),
          new Rows(6, 9, 6, 10),
          new Rows(333, 70, 333, 400),
          new Rows(333, 70, 401, 333),
          new Rows(4096, 40, 4096, 8192),
          new Rows(1008, 200, 2048, 1008));

  private CopyChecks() {}

  static void run(CheckBench bench) {
    bench.check("copy", "sizes and addresses of every alignment", () -> copies(bench));
    bench.check(
        "copy_rows",
        "rows of every alignment, gaps left alone",
        () ->
            rows(
                bench,
                (to, from, rows) ->
                    bench
                        .kernels()
                        .copyRows(
                            bench.stream(),
                            3,
                            to,
                            rows.toPitch(),
                            from,
                            rows.fromPitch(),
                            rows.rowBytes(),
                            rows.rows())));
    bench.check(
        "copy_rows",
        "the same by the driver",
        () ->
            rows(
                bench,
                (to, from, rows) ->
                    bench.stream()
                        .copyRows(
                            to,
                            rows.toPitch(),
                            from,
                            rows.fromPitch(),
                            rows.rowBytes(),
                            rows.rows())));
    if (bench.kernels().hasTma()) {
      bench.check("copy_tma", "sizes around its chunks", () -> bulkCopies(bench));
      bench.check("copy_tma", "complete when the stream signals", () -> signals(bench));
    }
  }

  /// A copy of contiguous bytes, with the offsets of its addresses.
  private record Bytes(int size, int blocks, int toShift, int fromShift) {
    Optional<String> check(CheckBench bench, boolean bulk) {
      var content = bytes(size);
      try (var to = bench.buffer(size, toShift);
          var from = bench.buffer(size, fromShift).put(content)) {
        if (bulk) {
          bench.kernels().copyTma(bench.stream(), blocks, to.address(), from.address(), size);
        } else {
          bench.kernels().copy(bench.stream(), blocks, to.address(), from.address(), size);
        }
        return to.holds(content);
      }
    }
  }

  private static Optional<String> copies(CheckBench bench) {
    int shifts = SHIFTS_BYTES.size();
    return CheckBench.firstWrong(
        IntStream.range(0, SIZES_BYTES.size() * shifts)
            .mapToObj(
                i ->
                    new Bytes(
                        SIZES_BYTES.get(i / shifts),
                        BLOCKS.get(i % BLOCKS.size()),
                        SHIFTS_BYTES.get(i % shifts).getFirst(),
                        SHIFTS_BYTES.get(i % shifts).getLast())),
        each -> each.check(bench, false));
  }

  private static Optional<String> bulkCopies(CheckBench bench) {
    return CheckBench.firstWrong(
        TMA_SIZES_BYTES.stream()
            .flatMap(size -> Stream.of(1, 2, 7).map(blocks -> new Bytes(size, blocks, 16, 48))),
        each -> each.check(bench, true));
  }

  /// Copies again on another stream after the first stream's signal. Each round has other content,
  /// so that a late copy is detected.
  private static Optional<String> signals(CheckBench bench) {
    int size = (1 << 20) + 48;
    try (var from = bench.buffer(size, 16);
        var middle = bench.buffer(size, 48);
        var to = bench.buffer(size, 32);
        var word = bench.buffer(Long.BYTES, 0).put(new byte[Long.BYTES]);
        var after = bench.gpu().stream(bench.gpu().leastPriority())) {
      for (int i = 1; i <= SIGNALLED; i++) {
        var content = bytes(size, i);
        from.put(content);
        // One block, so that the other stream waits before the copy is done.
        bench.kernels().copyTma(bench.stream(), 1, middle.address(), from.address(), size);
        bench.stream().write(word.address(), i);
        after.awaitAtLeast(word.address(), i);
        bench.kernels().copyTma(after, 5, to.address(), middle.address(), size);
        after.synchronize();
        var wrong = to.holds(content);
        if (wrong.isPresent()) {
          return wrong.map("signal %d: ".formatted(i)::concat);
        }
      }
    }
    return Optional.empty();
  }

  /// Copies rows between two addresses.
  private interface RowCopy {
    void copy(long to, long from, Rows rows);
  }

  private static Optional<String> rows(CheckBench bench, RowCopy rowCopy) {
    for (var rows : ROWS) {
      for (int shift : List.of(0, 1, 2, 4)) {
        int toBytes = (rows.rows() - 1) * rows.toPitch() + rows.rowBytes();
        int fromBytes = (rows.rows() - 1) * rows.fromPitch() + rows.rowBytes();
        var content = bytes(fromBytes);
        var expected = new byte[toBytes];
        Arrays.fill(expected, CheckBench.Buffer.GUARD);
        for (int row = 0; row < rows.rows(); row++) {
          System.arraycopy(
              content, row * rows.fromPitch(), expected, row * rows.toPitch(), rows.rowBytes());
        }
        try (var to = bench.buffer(toBytes, shift);
            var from = bench.buffer(fromBytes, 0).put(content)) {
          rowCopy.copy(to.address(), from.address(), rows);
          var wrong = to.holds(expected);
          if (wrong.isPresent()) {
            return wrong.map("%s, shift %d: ".formatted(rows, shift)::concat);
          }
        }
      }
    }
    return Optional.empty();
  }

  /// Returns random bytes, with the count as seed.
  static byte[] bytes(int count) {
    return bytes(count, count);
  }

  private static byte[] bytes(int count, long seed) {
    var bytes = new byte[count];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }
}
