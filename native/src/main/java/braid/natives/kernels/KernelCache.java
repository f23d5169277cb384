package braid.natives.kernels;

import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/// Compiled kernels on disk, since compiling takes seconds. A file's name is a hash of every input
/// of the compilation. Several processes may share a folder; files are replaced atomically. A file
/// is the machine code followed by its SHA-256, which detects damage.
final class KernelCache {
  private static final int DIGEST_BYTES = 32;
  private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

  private final Path folder;
  private final Consumer<String> warn;

  /// @param warn receives each problem that costs time but stops nothing, once per process
  KernelCache(Path folder, Consumer<String> warn) {
    this.folder = folder;
    this.warn = warn;
  }

  /// Returns the machine code, compiled if it is not cached.
  byte[] compiled(KernelSources sources, KernelCompiler compiler, String architecture) {
    var file = file(sources, compiler, architecture);
    return read(file)
        .orElseGet(
            () -> {
              var code = compiler.compile(sources, architecture);
              write(file, code);
              return code;
            });
  }

  /// File of the compiled kernels.
  Path file(KernelSources sources, KernelCompiler compiler, String architecture) {
    var digest = sha256();
    feed(digest, compiler.version());
    KernelCompiler.options(architecture).forEach(option -> feed(digest, option));
    feed(digest, sources.program());
    sources.included().forEach((name, text) -> feed(digest, name + "\n" + text));
    return folder.resolve(
        HexFormat.of().formatHex(digest.digest()) + "-" + architecture + ".cubin");
  }

  private Optional<byte[]> read(Path file) {
    if (!Files.exists(file)) {
      return Optional.empty();
    }
    try {
      var all = Files.readAllBytes(file);
      var code = Arrays.copyOf(all, Math.max(0, all.length - DIGEST_BYTES));
      if (code.length > 0
          && Arrays.equals(
              sha256().digest(code), Arrays.copyOfRange(all, code.length, all.length))) {
        return Optional.of(code);
      }
      warnOnce("compiled kernels in %s are damaged; they are compiled again".formatted(file));
    } catch (IOException e) {
      warnOnce(
          "compiled kernels in %s cannot be read (%s); they are compiled again".formatted(file, e));
    }
    return Optional.empty();
  }

  private void write(Path file, byte[] code) {
    try {
      var all = Arrays.copyOf(code, code.length + DIGEST_BYTES);
      System.arraycopy(sha256().digest(code), 0, all, code.length, DIGEST_BYTES);
      Files.createDirectories(folder);
      WholeFile.write(file, all);
    } catch (IOException e) {
      warnOnce(
          "compiled kernels cannot be kept in %s (%s) and are compiled at every start; make it writable"
              .formatted(folder, e));
    }
  }

  private void warnOnce(String message) {
    if (WARNED.add(message)) {
      warn.accept(message);
    }
  }

  /// Appends a text and a terminator, so that two different lists of texts never feed the same
  /// bytes.
  private static void feed(MessageDigest digest, String text) {
    digest.update(text.getBytes(StandardCharsets.UTF_8));
    digest.update((byte) 0);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
