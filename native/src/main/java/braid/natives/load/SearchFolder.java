package braid.natives.load;

import java.nio.file.Path;

/// A folder in which libraries may lie, and what kind of place it is, in the words of a message.
record SearchFolder(Kind kind, Path folder) {
  enum Kind {
    TOOLKIT("the CUDA toolkit"),
    PYTHON("Python's packages"),
    LIBRARY_PATH("LD_LIBRARY_PATH"),
    LOADER("the dynamic loader's folders"),
    REDIST("the redist jar");

    final String words;

    Kind(String words) {
      this.words = words;
    }
  }
}
