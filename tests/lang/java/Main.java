import other.Other;
import java.util.*;

public class Main {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
        case "talk":
            System.out.println(Other.greeting());
            for (int i = 1; i < args.length; i++)
                System.out.println("arg: " + args[i]);
            Scanner in = new Scanner(System.in, "UTF-8");
            while (in.hasNextLine())
                System.out.println("stdin: " + in.nextLine());
            System.exit(7);
        case "fault":
            throw new IllegalStateException("boom ä");
        case "big":
            byte[] block = "x".repeat(1 << 20).getBytes();
            for (int i = 0; i < 10; i++)
                System.out.write(block);
            break;
        case "loop":
            for (;;);
        case "memory":
            for (List<byte[]> all = new ArrayList<>();;)
                all.add(new byte[1 << 20]);
        }
    }
}
