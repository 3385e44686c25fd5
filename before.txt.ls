total 2184
drwxr-xr-x 2 root root   4096 Nov 22 14:30 .
drwxr-xr-x 5 root root   4096 Nov 22 14:29 ..
-rw-r--r-- 1 root root  86482 Nov 22 14:29 crossings.csv
-rw-r--r-- 1 root root  35160 Nov 22 14:29 crossings.md
-rw-r--r-- 1 root root 116269 Nov 22 14:29 curves.csv
-rw-r--r-- 1 root root 119195 Nov 22 14:30 curves.pdf
-rw-r--r-- 1 root root 127476 Nov 22 14:30 curves.png
-rw-r--r-- 1 root root 691978 Nov 22 14:30 curves.svg
-rw-r--r-- 1 root root 347028 Nov 22 14:29 ledger.csv
-rw-r--r-- 1 root root 140483 Nov 22 14:29 manifest.json
-rw-r--r-- 1 root root 541310 Nov 22 14:30 report.html
