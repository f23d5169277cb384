package braid.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.SyntheticProfiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.Test;

/// In fresh processes, in which no table exists yet.
class TableTypesTest {
  /// Displays profiles in one thread and makes the tables to save in another, both at once.
  static final class Both {
    public static void main(String[] args) throws Exception {
      var set = new SyntheticProfiles(2, 2, 2, 1, 10, 10).set();
      var together = new CyclicBarrier(2);
      var saving =
          new Thread(
              () -> {
                try {
                  together.await();
                } catch (Exception e) {
                  throw new IllegalStateException(e);
                }
                set.tables();
              });
      saving.start();
      together.await();
      set.overview();
      saving.join();
      System.out.println("both are done");
    }
  }

  @Test
  void twoThreadsMakeTheirFirstTablesAtOnce() throws IOException, InterruptedException {
    var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    for (int attempt = 0; attempt < 5; attempt++) {
      var process =
          new ProcessBuilder(
                  java, "-cp", System.getProperty("java.class.path", "."), Both.class.getName())
              .redirectErrorStream(true)
              .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
              .start();
      try (var output = process.inputReader()) {
        assertThat(output.lines()).contains("both are done");
      }
      assertThat(process.waitFor()).isZero();
    }
  }
}
