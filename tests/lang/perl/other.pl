sub greeting { return "from the other file: Größe 漢字" }
1;
