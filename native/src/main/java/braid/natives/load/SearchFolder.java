package braid.natives.load;

import java.nio.file.Path;

/// A folder to search for libraries, and its origin in the words of messages.
record SearchFolder(Source source, Path folder) {
  enum Source {
    /// A folder that the user has chosen, in which alone the library is searched.
    CHOSEN("the folder of " + Libraries.FOLDERS),
    TOOLKIT("the CUDA toolkit"),
    PYTHON("Python's packages"),
    LIBRARY_PATH("LD_LIBRARY_PATH"),
    LOADER("the dynamic loader's folders"),
    REDIST("the redist jar");

    final String words;

    Source(String words) {
      this.words = words;
    }
  }
}
