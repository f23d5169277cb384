package braid.launcher.session;

import braid.model.BraidException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeElement;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;

/// Replaces calls of a `%%front` cell that would end the front's process by methods that fail the
/// cell. Method references, reflection and libraries are not covered; [braid.launcher.ProcessExit]
/// prevents them from ending a run with success.
@SuppressWarnings("DoNotCallSuggester")
public final class ExitCalls {
  private static final ClassDesc REPLACEMENTS = ClassDesc.of(ExitCalls.class.getName());
  private static final ClassDesc RUNTIME = ClassDesc.of("java.lang.Runtime");

  private ExitCalls() {}

  /// Replaces `System.exit`.
  public static void exit(int code) {
    throw refused("System.exit", code);
  }

  /// Replaces `Runtime.exit`.
  public static void exit(Runtime runtime, int code) {
    throw refused("Runtime.exit", code);
  }

  /// Replaces `Runtime.halt`.
  public static void halt(Runtime runtime, int code) {
    throw refused("Runtime.halt", code);
  }

  private static BraidException refused(String call, int code) {
    return new BraidException(
        "a %%%%front cell must not end the session but called %s(%d); leave it out, or throw an exception"
            .formatted(call, code));
  }

  static ClassBytecodes[] refuse(ClassBytecodes[] classes) {
    var woven = new ClassBytecodes[classes.length];
    for (int i = 0; i < classes.length; i++) {
      woven[i] = new ClassBytecodes(classes[i].name(), refuse(classes[i].bytecodes()));
    }
    return woven;
  }

  private static byte[] refuse(byte[] bytes) {
    var format = ClassFile.of();
    return format.transformClass(
        format.parse(bytes),
        ClassTransform.transformingMethodBodies(
            (code, element) -> {
              switch (replaced(element)) {
                case "System.exit" ->
                    code.invokestatic(REPLACEMENTS, "exit", signature(ConstantDescs.CD_int));
                case "Runtime.exit" ->
                    code.invokestatic(
                        REPLACEMENTS, "exit", signature(RUNTIME, ConstantDescs.CD_int));
                case "Runtime.halt" ->
                    code.invokestatic(
                        REPLACEMENTS, "halt", signature(RUNTIME, ConstantDescs.CD_int));
                default -> code.with(element);
              }
            }));
  }

  private static MethodTypeDesc signature(ClassDesc... parameters) {
    return MethodTypeDesc.of(ConstantDescs.CD_void, parameters);
  }

  /// Returns the called method, if it belongs to one of the two classes.
  private static String replaced(CodeElement element) {
    if (!(element instanceof InvokeInstruction call)) {
      return "";
    }
    return switch (call.owner().asInternalName()) {
      case "java/lang/System" -> "System." + call.name().stringValue();
      case "java/lang/Runtime" -> "Runtime." + call.name().stringValue();
      default -> "";
    };
  }
}
