package other;

public class Other {
    public static String greeting() {
        return "from the other file: Größe 漢字";
    }
}
