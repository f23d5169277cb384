package braid.natives;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/// Texts in Braid's jars.
public final class Resources {
  private Resources() {}

  /// Returns the text of a resource.
  ///
  /// @param path absolute path, such as `/braid/machines/h200x8.txt`
  /// @throws IllegalStateException if the build has left it out
  public static String text(String path) {
    try (var stream = Resources.class.getResourceAsStream(path)) {
      if (stream == null) {
        throw new IllegalStateException(path + " is not in Braid's jars; build again");
      }
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + path, e);
    }
  }
}
