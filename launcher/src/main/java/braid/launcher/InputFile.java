package braid.launcher;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Input text of a command: a regular file or a pipe, of limited size.
public final class InputFile {
  private static final int FILE_TYPE = 0170000;
  private static final int PIPE = 0010000;

  private InputFile() {}

  /// Reads a UTF-8 file.
  ///
  /// @throws java.nio.charset.CharacterCodingException if it is not UTF-8
  /// @throws FileSystemException if it is too large or not a file or pipe; the reason completes a
  ///   sentence
  public static String read(Path file, int mostMebibytes) throws IOException {
    int most = Math.multiplyExact(mostMebibytes, 1 << 20);
    if (Files.isRegularFile(file)) {
      if (Files.size(file) > most) {
        throw refused(
            file, "has %d MiB, more than %d".formatted(Files.size(file) >> 20, mostMebibytes));
      }
      return Files.readString(file);
    }
    if (Files.isDirectory(file)) {
      throw refused(file, "is a directory");
    }
    if (((int) Files.getAttribute(file, "unix:mode") & FILE_TYPE) != PIPE) {
      throw refused(file, "is a device or a socket");
    }
    try (var pipe = Files.newInputStream(file)) {
      var bytes = pipe.readNBytes(most + 1);
      if (bytes.length > most) {
        throw refused(file, "has more than %d MiB".formatted(mostMebibytes));
      }
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    }
  }

  private static FileSystemException refused(Path file, String reason) {
    return new FileSystemException(file.toString(), null, reason);
  }

  /// Returns why the file could not be read, as the end of a sentence.
  public static String reason(IOException e) {
    return e.getClass() == FileSystemException.class
            && e instanceof FileSystemException refused
            && refused.getReason() != null
        ? refused.getReason()
        : "cannot be read (" + e + ")";
  }
}
