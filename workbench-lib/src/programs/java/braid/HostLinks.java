package braid;

import braid.internal.shared.SignalWord;
import braid.natives.ucx.UcxPeer;
import braid.natives.ucx.UcxWorker;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/// Measures UCX beside a plain socket and shared memory, between two processes, in one run.
///
/// Arguments: the address at which the second process reaches the first, and the command that
/// starts it elsewhere, such as `10.88.0.1 ip netns exec b`; without any, both are in one place.
/// The second process is asleep unless a row needs its answer.
final class HostLinks {
  private static final int[] SIZES = {8, 64 << 10, 1 << 20, 16 << 20};
  private static final int LARGEST = 16 << 20;
  private static final int MOST_REPEATS = 1000;
  private static final int LEAST_REPEATS = 20;
  private static final long BYTES_PER_ROW = 256L << 20;
  private static final int ROUNDS = 5;
  private static final int EPOCH = 1;
  private static final long WORD_BYTES = 64;
  private static final long WAIT_NANOS = 1_000_000_000;
  private static final String SECOND = "second";

  private HostLinks() {}

  public static void main(String... arguments) throws Exception {
    if (arguments.length > 0 && arguments[0].equals(SECOND)) {
      second(arguments[1], Integer.parseInt(arguments[2]), Path.of(arguments[3]));
      return;
    }
    var address = arguments.length == 0 ? "127.0.0.1" : arguments[0];
    var prefix = Arrays.asList(arguments).subList(Math.min(1, arguments.length), arguments.length);
    var file = Files.createTempFile(Path.of("/dev/shm"), "braid-links-", "");
    try (var listening = new ServerSocket()) {
      listening.bind(new InetSocketAddress(address, 0));
      var child = start(prefix, address, listening.getLocalPort(), file);
      try (var socket = listening.accept()) {
        first(socket, file);
      } finally {
        child.destroy();
      }
    } finally {
      Files.delete(file);
    }
  }

  private static Process start(List<String> prefix, String address, int port, Path file)
      throws IOException {
    var command = new ArrayList<>(prefix);
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("java.class.path"),
            HostLinks.class.getName(),
            SECOND,
            address,
            Integer.toString(port),
            file.toString()));
    return new ProcessBuilder(command).inheritIO().start();
  }

  private static MemorySegment map(Path file, Arena arena) throws IOException {
    try (var channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, LARGEST + 2 * WORD_BYTES, arena);
    }
  }

  private static int repeats(int bytes) {
    return Math.clamp(BYTES_PER_ROW / bytes, LEAST_REPEATS, MOST_REPEATS);
  }

  @FunctionalInterface
  private interface Body {
    void run() throws Exception;
  }

  /// Prints the median of several rounds, in microseconds per operation.
  private static void row(String name, int bytes, int operations, Body body) throws Exception {
    var micros = new double[ROUNDS];
    body.run();
    for (int round = 0; round < ROUNDS; round++) {
      long start = System.nanoTime();
      body.run();
      micros[round] = (System.nanoTime() - start) / 1e3 / operations;
    }
    Arrays.sort(micros);
    double median = micros[ROUNDS / 2];
    System.out.printf(
        Locale.ROOT,
        "%-28s %9d B %10.1f us %7.2f GB/s   (%.1f to %.1f us)%n",
        name,
        bytes,
        median,
        bytes / median / 1e3,
        micros[0],
        micros[ROUNDS - 1]);
  }

  private static void first(Socket socket, Path file) throws Exception {
    socket.setTcpNoDelay(true);
    var output = new DataOutputStream(socket.getOutputStream());
    var input = new DataInputStream(socket.getInputStream());
    try (var arena = Arena.ofShared()) {
      var shared = map(file, arena);
      var own = arena.allocate(LARGEST, WORD_BYTES);
      var answered = arena.allocate(WORD_BYTES, WORD_BYTES);
      var worker =
          UcxWorker.open(
              "first",
              message ->
                  SignalWord.raise(
                      answered, 0, EPOCH, message.get(ValueLayout.JAVA_INT_UNALIGNED, 0)));
      output.writeUTF(HexFormat.of().formatHex(worker.address()));
      output.flush();
      var peer = worker.connect(HexFormat.of().parseHex(input.readUTF()), reason -> {});
      var memory = peer.memory(HexFormat.of().parseHex(input.readUTF()));
      long far = input.readLong();
      var step = new int[1];
      for (int bytes : SIZES) {
        int repeats = repeats(bytes);
        var buffer = new byte[bytes];
        row(
            "socket, half round trip",
            bytes,
            2 * repeats,
            () -> {
              output.writeInt(bytes);
              output.writeInt(repeats);
              output.flush();
              for (int i = 0; i < repeats; i++) {
                output.write(buffer);
                output.flush();
                input.readFully(buffer);
              }
            });
        var piece = List.of(new UcxPeer.Piece(own.address(), far, bytes));
        row("UCX put, arrived", bytes, repeats, () -> each(repeats, () -> peer.put(memory, piece)));
        row("UCX get", bytes, repeats, () -> each(repeats, () -> peer.fetch(memory, piece)));
        row(
            "UCX put + signal, half trip",
            bytes,
            2 * repeats,
            () -> {
              for (int i = 0; i < repeats; i++) {
                peer.put(memory, piece).get();
                var _ = peer.send(number(++step[0]));
                while (!SignalWord.await(answered, 0, EPOCH, step[0], WAIT_NANOS)) {
                  Thread.onSpinWait();
                }
              }
            });
        var ping = shared.asSlice(LARGEST, WORD_BYTES);
        var pong = shared.asSlice(LARGEST + WORD_BYTES, WORD_BYTES);
        row(
            "shared memory + signal, half",
            bytes,
            2 * repeats,
            () -> {
              output.writeInt(-bytes);
              output.writeInt(repeats);
              output.writeInt(step[0]);
              output.flush();
              for (int i = 0; i < repeats; i++) {
                MemorySegment.copy(own, 0, shared, 0, bytes);
                SignalWord.raise(ping, 0, EPOCH, ++step[0]);
                while (!SignalWord.await(pong, 0, EPOCH, step[0], WAIT_NANOS)) {
                  Thread.onSpinWait();
                }
              }
            });
      }
      output.writeInt(0);
      output.flush();
      worker.close();
    }
  }

  private static byte[] number(int value) {
    var bytes = new byte[Integer.BYTES];
    MemorySegment.ofArray(bytes).set(ValueLayout.JAVA_INT_UNALIGNED, 0, value);
    return bytes;
  }

  @FunctionalInterface
  private interface Transfer {
    CompletableFuture<Void> start();
  }

  private static void each(int repeats, Transfer transfer)
      throws InterruptedException, ExecutionException {
    for (int i = 0; i < repeats; i++) {
      transfer.start().get();
    }
  }

  private static void second(String address, int port, Path file) throws Exception {
    try (var socket = new Socket(address, port);
        var arena = Arena.ofShared()) {
      socket.setTcpNoDelay(true);
      var output = new DataOutputStream(socket.getOutputStream());
      var input = new DataInputStream(socket.getInputStream());
      var shared = map(file, arena);
      var own = arena.allocate(LARGEST, WORD_BYTES);
      var back = arena.allocate(LARGEST, WORD_BYTES);
      var first = new ArrayList<UcxPeer>();
      var worker =
          UcxWorker.open(
              "second",
              message -> {
                // Answered where it arrives, as a stream that waits would answer.
                var _ = first.getFirst().send(message.toArray(ValueLayout.JAVA_BYTE));
              });
      first.add(worker.connect(HexFormat.of().parseHex(input.readUTF()), reason -> {}));
      output.writeUTF(HexFormat.of().formatHex(worker.address()));
      output.writeUTF(HexFormat.of().formatHex(worker.map(own).key()));
      output.writeLong(own.address());
      output.flush();
      var ping = shared.asSlice(LARGEST, WORD_BYTES);
      var pong = shared.asSlice(LARGEST + WORD_BYTES, WORD_BYTES);
      for (int bytes = input.readInt(); bytes != 0; bytes = input.readInt()) {
        int repeats = input.readInt();
        if (bytes > 0) {
          var buffer = new byte[bytes];
          for (int i = 0; i < repeats; i++) {
            input.readFully(buffer);
            output.write(buffer);
            output.flush();
          }
        } else {
          int step = input.readInt();
          for (int i = 0; i < repeats; i++) {
            while (!SignalWord.await(ping, 0, EPOCH, step + 1, WAIT_NANOS)) {
              Thread.onSpinWait();
            }
            step++;
            MemorySegment.copy(shared, 0, back, 0, -bytes);
            SignalWord.raise(pong, 0, EPOCH, step);
          }
        }
      }
      worker.close();
    }
  }
}
