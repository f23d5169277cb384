package braid.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/// Tests a store whose process runs out of descriptors and later has some again.
class StoreWithoutDescriptorsTest {
  private static final String FULL = "full";

  /// The store's process: prints its port, opens all descriptors at the first input line, closes
  /// them at the second, and ends at the third.
  public static final class Full {
    private Full() {}

    public static void main(String[] args) throws IOException {
      Consumer<String> printed = System.out::println;
      try (var server = StoreServer.open("secret", printed)) {
        System.out.println(server.port());
        next();
        var held = new ArrayList<FileInputStream>();
        try {
          while (true) {
            held.add(new FileInputStream("/dev/null"));
          }
        } catch (IOException e) {
          System.out.println(FULL);
        }
        next();
        for (var file : held) {
          file.close();
        }
        next();
      }
    }

    private static void next() throws IOException {
      assertThat(System.in.read()).isEqualTo('\n');
    }
  }

  @Test
  void acceptsConnectionsAgainAndPrintsTheReasonOnce() throws Exception {
    var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    var process =
        new ProcessBuilder(
                "sh",
                "-c",
                "ulimit -n 100 && exec \"$@\"",
                "sh",
                java,
                "-cp",
                System.getProperty("java.class.path"),
                Full.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try (var lines =
            new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        var commands = process.getOutputStream()) {
      int port = Integer.parseInt(lines.readLine());
      // One connection refused and one served load the store's classes, for which it has no
      // descriptors later.
      assertThatThrownBy(() -> StoreClient.connect("127.0.0.1", port, "guess", 0))
          .hasMessageContaining("wrong token");
      assertThat(lines.readLine()).contains("wrong token");
      var before = StoreClient.connect("127.0.0.1", port, "secret", 1);
      commands.write('\n');
      commands.flush();
      assertThat(lines.readLine()).isEqualTo(FULL);
      var client =
          CompletableFuture.supplyAsync(() -> StoreClient.connect("127.0.0.1", port, "secret", 0));
      assertThat(lines.readLine())
          .startsWith("the store cannot take connections for now: ")
          .contains("Too many open files");
      commands.write('\n');
      commands.flush();
      client.get(30, TimeUnit.SECONDS).close();
      before.close();
      commands.write('\n');
      commands.flush();
      assertThat(lines.lines().filter(line -> !line.endsWith(" more times)"))).isEmpty();
      assertThat(process.waitFor()).isZero();
    } finally {
      process.destroyForcibly();
    }
  }
}
