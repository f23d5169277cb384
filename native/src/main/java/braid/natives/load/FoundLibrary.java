package braid.natives.load;

import java.nio.file.Path;
import java.util.List;

/// Where a native library was found, and why that one. `passedOver` has the others, each with the
/// reason.
public record FoundLibrary(
    String name, Path path, String version, String why, List<String> passedOver) {
  public FoundLibrary {
    passedOver = List.copyOf(passedOver);
  }
}
