package braid.launcher.bundle;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/// The class path as a folder of jars, without files that Braid never loads. Entries are stored
/// uncompressed, because the whole bundle is compressed better.
final class LeanJars {
  /// JNI libraries of CUDA that Braid calls; the presets have eighteen others.
  private static final String CUDA = "libjni(cudart|cublas|cudnn|nvrtc|nccl|cupti|nvml)\\.so";

  /// Names of jar entries that are left out.
  private static final List<Pattern> UNUSED =
      List.of(
          // for other tools: native-image, C compilers, CMake
          Pattern.compile("META-INF/native-image/.*|org/bytedeco/.*\\.(h|cmake|pc)"),
          // Bouncy Castle as a provider of the JDK's interfaces
          Pattern.compile(
              "META-INF/(versions/.*/org/bouncycastle/.*|services/java.security.Provider)"),
          Pattern.compile("org/bouncycastle/.*\\.(?!class$)[^/]*"),
          // signatures would be invalid for changed jars
          Pattern.compile("META-INF/[^/]*\\.(SF|RSA|DSA|EC)"),
          Pattern.compile("org/bytedeco/cuda/[^/]+/(?!" + CUDA + "$).*\\.so"),
          // Braid calls BLAS without LAPACK
          Pattern.compile("org/bytedeco/openblas/[^/]+/libjniopenblas(_full)?\\.so"),
          // Tablesaw only detects charsets with it, which needs no language data
          Pattern.compile("com/ibm/icu/impl/data/.*"));

  /// Packages of which only the reachable classes are kept: fastutil's 12,000 generated classes, of
  /// which Tablesaw uses a seventh, and Bouncy Castle, of which a kernel uses three algorithms.
  private static final List<String> PRUNED = List.of("it/unimi/dsi/fastutil/", "org/bouncycastle/");

  private static final String CLASS = ".class";

  /// Time of entries, so that equal jars are equal files.
  private static final LocalDateTime EQUAL_TIME = LocalDateTime.of(1980, 1, 1, 0, 0);

  /// Native libraries keep their time. JavaCPP unpacks them into one cache per user, and again if
  /// the time differs: a checkout could load a library while a bundle replaces it.
  private static final Pattern NATIVE = Pattern.compile(".*\\.so(\\.\\d+)*");

  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  private record Content(byte[] bytes, LocalDateTime time) {}

  private LeanJars() {}

  /// @param classPath jars and folders of classes
  static void copy(List<Path> classPath, Path into) throws IOException {
    var jars = new LinkedHashMap<String, SequencedMap<String, Content>>();
    for (var entry : classPath) {
      var kept = Files.isDirectory(entry) ? folder(entry) : jar(entry);
      kept.keySet().removeIf(LeanJars::isUnused);
      if (jars.put(name(entry), kept) != null) {
        throw new IOException("two entries of the class path would be " + name(entry));
      }
    }
    var classes = new HashMap<String, byte[]>();
    jars.values().forEach(jar -> putClasses(jar, classes));
    var reached = ReachableClasses.of(classes, LeanJars::isPruned);
    Files.createDirectories(into);
    for (var jar : jars.entrySet()) {
      jar.getValue().keySet().removeIf(name -> isPruned(name, reached));
      write(jar.getValue(), into.resolve(jar.getKey()));
    }
  }

  private static boolean isUnused(String name) {
    return UNUSED.stream().anyMatch(unused -> unused.matcher(name).matches());
  }

  private static boolean isPruned(String name, Set<String> reached) {
    return isPruned(name)
        && name.endsWith(CLASS)
        && !reached.contains(name.substring(0, name.length() - CLASS.length()));
  }

  private static boolean isPruned(String name) {
    return PRUNED.stream().anyMatch(name::startsWith);
  }

  private static void putClasses(Map<String, Content> jar, Map<String, byte[]> classes) {
    jar.forEach(
        (name, content) -> {
          if (name.endsWith(CLASS) && !name.startsWith("META-INF/")) {
            classes.put(name.substring(0, name.length() - CLASS.length()), content.bytes);
          }
        });
  }

  /// Name of the jar; for a folder of classes, of the module that it belongs to.
  private static String name(Path entry) {
    if (!Files.isDirectory(entry)) {
      return entry.getFileName().toString();
    }
    var module = entry.toAbsolutePath().normalize().getName(entry.getNameCount() - 3);
    return "braid-" + module + ".jar";
  }

  private static SequencedMap<String, Content> jar(Path file) throws IOException {
    var entries = new LinkedHashMap<String, Content>();
    try (var jar = new ZipFile(file.toFile())) {
      for (var entry : Collections.list(jar.entries())) {
        if (!entry.isDirectory()) {
          boolean unpacked = NATIVE.matcher(entry.getName()).matches();
          try (var content = jar.getInputStream(entry)) {
            entries.put(
                entry.getName(),
                new Content(content.readAllBytes(), unpacked ? entry.getTimeLocal() : EQUAL_TIME));
          }
        }
      }
    }
    return entries;
  }

  private static SequencedMap<String, Content> folder(Path folder) throws IOException {
    var entries = new LinkedHashMap<String, Content>();
    var files = new ArrayList<Path>();
    try (var all = Files.walk(folder)) {
      all.filter(Files::isRegularFile).sorted().forEach(files::add);
    }
    for (var file : files) {
      entries.put(
          folder.relativize(file).toString(), new Content(Files.readAllBytes(file), EQUAL_TIME));
    }
    return entries;
  }

  private static void write(SequencedMap<String, Content> entries, Path file) throws IOException {
    try (OutputStream out = Files.newOutputStream(file);
        var jar = new ZipOutputStream(out)) {
      for (var entry : entries.entrySet()) {
        var bytes = entry.getValue().bytes;
        var stored = new ZipEntry(entry.getKey());
        stored.setMethod(ZipEntry.STORED);
        stored.setSize(bytes.length);
        var sum = new CRC32();
        sum.update(bytes);
        stored.setCrc(sum.getValue());
        stored.setTimeLocal(entry.getValue().time);
        jar.putNextEntry(stored);
        jar.write(bytes);
        jar.closeEntry();
      }
    }
  }
}
