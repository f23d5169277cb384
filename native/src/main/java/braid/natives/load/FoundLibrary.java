package braid.natives.load;

import java.nio.file.Path;
import java.util.List;

/// A native library that was found, with the reason for this copy. `passedOver` lists the other
/// copies, each with its reason.
public record FoundLibrary(
    String name, Path path, String version, String reason, List<String> passedOver) {
  public FoundLibrary {
    passedOver = List.copyOf(passedOver);
  }
}
