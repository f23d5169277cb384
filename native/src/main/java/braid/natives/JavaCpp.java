package braid.natives;

/// How JavaCPP is set up, before the first of its classes is touched.
public final class JavaCpp {
  private static final String PREFIX = "org.bytedeco.javacpp.";

  private JavaCpp() {}

  /// Takes JavaCPP's own limits off: it counts the whole process, and a process with a GPU has
  /// gigabytes mapped and pinned that Java's heap knows nothing of. What is set already stays.
  public static void prepare() {
    for (String limit : new String[] {"maxbytes", "maxphysicalbytes"}) {
      if (System.getProperty(PREFIX + limit) == null) {
        System.setProperty(PREFIX + limit, "0");
      }
    }
  }
}
