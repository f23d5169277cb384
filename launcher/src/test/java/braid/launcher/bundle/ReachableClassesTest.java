package braid.launcher.bundle;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReachableClassesTest {
  static final class Uses {
    Object array = new Used[0][0];
  }

  static final class Used {
    Object more = new UsedByUsed();
  }

  static final class UsedByUsed {}

  static final class Unused {}

  @Test
  void areThoseThatSomebodyNames() throws IOException {
    var classes = new HashMap<String, byte[]>();
    for (var type : List.of(Uses.class, Used.class, UsedByUsed.class, Unused.class)) {
      try (var bytes = type.getResourceAsStream(name(type).replaceFirst(".*/", "") + ".class")) {
        assertThat(bytes).isNotNull();
        classes.put(name(type), bytes.readAllBytes());
      }
    }
    assertThat(ReachableClasses.of(classes, name -> !name.equals(name(Uses.class))))
        .containsExactlyInAnyOrder(name(Uses.class), name(Used.class), name(UsedByUsed.class));
  }

  private static String name(Class<?> type) {
    return type.getName().replace('.', '/');
  }
}
