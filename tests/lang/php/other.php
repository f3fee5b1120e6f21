<?php
function greeting() { return "from the other file: Größe 漢字"; }
