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

/// Compiled kernels on disk, since compiling takes seconds: a file's name follows from all that
/// went into it. Several processes may share a folder; a file is there whole or not at all. It is
/// the machine code, then its SHA-256, by which a damaged file is known.
final class KernelCache {
  private static final int DIGEST_BYTES = 32;
  private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

  private final Path folder;
  private final Consumer<String> say;

  /// `say` hears, once a process, of what does not stop anybody but costs time.
  KernelCache(Path folder, Consumer<String> say) {
    this.folder = folder;
    this.say = say;
  }

  /// The machine code, compiled if it must be.
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

  /// Where it is kept.
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
      sayOnce("compiled kernels in %s are damaged; they are compiled again".formatted(file));
    } catch (IOException e) {
      sayOnce(
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
      sayOnce(
          "compiled kernels cannot be kept in %s (%s) and are compiled at every start; make it writable"
              .formatted(folder, e));
    }
  }

  private void sayOnce(String what) {
    if (SAID.add(what)) {
      say.accept(what);
    }
  }

  /// Each text with its end, so that two lists of texts never feed the same.
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
